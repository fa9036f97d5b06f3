"""Agreement between what the modifiers of one name need and what a user has set."""

from .. import exceptions

__all__ = ["reduce_paramsets_requirements"]

_KEYS = ("paramset_type", "n_parameters", "is_scalar", "inits", "bounds", "auxdata", "factors", "sigmas", "fixed")


def __dir__():
    return __all__


def reduce_paramsets_requirements(paramsets_requirements, paramsets_user_configs):
    """Returns one record of settings for every parameter set.

    Parameters
    ----------
    paramsets_requirements : dict
        For each name the requirements of its modifiers, which must agree.
    paramsets_user_configs : dict
        For each name the settings that replace the defaults.

    Raises
    ------
    InvalidNameReuse
        Requirements that contradict each other.
    InvalidModel
        Settings that do not fit.
    """
    return {
        name: {**_settings(name, requirements, paramsets_user_configs.get(name, {})), "name": name}
        for name, requirements in paramsets_requirements.items()
    }


def _settings(name, requirements, user):
    settings = {}
    for key in _KEYS:
        wanted = {requirement.get(key, "undefined") for requirement in requirements}
        if len(wanted) != 1:
            raise exceptions.InvalidNameReuse(f"Multiple values for '{key}' ({list(wanted)}) were found for {name}. Use unique modifier names when constructing the pdf.")
        default = wanted.pop()
        value = user.get(key, default)
        if value == "undefined":
            settings[key] = set()
            continue
        if isinstance(value, tuple):
            value = list(value)
        elif isinstance(value, list) and default and default != "undefined" and len(value) != len(default):
            raise exceptions.InvalidModel(f"Incorrect number of values ({len(value)}) for {key} were configured by you, expected {len(default)}.")
        elif value and default == "undefined":
            raise exceptions.InvalidModel(f"{name} does not use the {key} attribute.")
        settings[key] = value
    return settings
