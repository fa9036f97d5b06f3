"""Modifiers of one's own, as pyhf's `experimental.modifiers` has them: factors that are formulas of
parameters, in the language of numexpr.

The engine computes them with exact derivatives; numexpr is not needed.
"""

from typing import NamedTuple

from .. import exceptions
from ..modifiers import histfactory_set
from ._numexpr import translated

__all__ = ["add_custom_modifier"]


def __dir__():
    return __all__


class CustomModifier(NamedTuple):
    """A type of modifier: the parameters that its formulas may name, and settings of the new ones
    among them.
    """

    name: str
    deps: tuple[str, ...]
    new_params: dict

    def formula(self, modifier):
        """Returns the engine's modifier for one of this type in a specification."""
        place = f"modifier `{modifier['name']}` of type `{self.name}`"
        data = modifier.get("data")
        if not isinstance(data, dict) or not isinstance(data.get("expr"), str):
            raise exceptions.InvalidModifier(f'{place}: its data must be {{"expr": "..."}}')
        try:
            expression = translated(data["expr"], self.deps)
        except ValueError as error:
            raise exceptions.InvalidModifier(f"{place}: {error}") from None
        # Formulas share their names with parameters; modifiers of a type of one's own do not.
        return {"name": f"{self.name}: {modifier['name']}", "type": "formula", "data": {"expression": expression}}

    def settings(self):
        """Returns the settings of the new parameters."""
        return [{"name": name, "inits": list(new["inits"]), "bounds": [list(pair) for pair in new["bounds"]]} for name, new in self.new_params.items()]


def add_custom_modifier(func_name, deps, new_params):
    """Returns a `modifier_set` for models: those of HistFactory, and the type `func_name`.

    A modifier of this type has the data ``{"expr": "..."}`` and multiplies yields by the value of
    the expression.

    Parameters
    ----------
    func_name : str
    deps : list of str
        Names of the parameters that expressions may have.
    new_params : dict
        ``inits`` and ``bounds`` of those that no other modifier brings, by name.

    Examples
    --------
    >>> import nextstat.pyhf as pyhf
    >>> from nextstat.pyhf.experimental.modifiers import add_custom_modifier
    >>> setting = {"inits": (1.0,), "bounds": ((-5.0, 5.0),)}
    >>> modifiers = add_custom_modifier("customfunc", ["m1", "m2"], {"m1": setting, "m2": setting})
    >>> custom = {"name": "f", "type": "customfunc", "data": {"expr": "m1+(m2**2)"}}
    >>> sample = {"name": "background", "data": [100.0], "modifiers": [custom]}
    >>> spec = {"channels": [{"name": "SR", "samples": [sample]}]}
    >>> model = pyhf.Model(spec, modifier_set=modifiers, poi_name="m1", validate=False)
    >>> model.config.par_names, model.expected_actualdata([1.0, 2.0])
    (['m1', 'm2'], array([500.]))
    """
    return {func_name: CustomModifier(func_name, tuple(deps), dict(new_params)), **histfactory_set}
