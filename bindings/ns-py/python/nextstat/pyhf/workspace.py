"""Workspaces: channels, observations and measurements in one document."""

from __future__ import annotations

import copy
import logging
from typing import Any

from . import _join, exceptions, schema
from ._patch import apply_patch
from .mixins import _ChannelSummaryMixin
from .pdf import Model

log = logging.getLogger(__name__.removeprefix("nextstat."))

__all__ = ["Workspace"]


def __dir__():
    return __all__


class Workspace(_ChannelSummaryMixin, dict):
    """A document as ``workspace.json`` has it, as a dictionary.

    Parameters
    ----------
    spec : dict
    validate : bool
        Whether to check it against the schema.

    Attributes
    ----------
    measurement_names : list of str
    observations : dict
        Observed counts by channel.
    """

    valid_joins = ["none", "outer", "left outer", "right outer"]

    def __init__(self, spec, validate=True, **config_kwargs) -> None:
        spec = copy.deepcopy(spec)
        self.schema = config_kwargs.pop("schema", "workspace.json")
        self.version = config_kwargs.pop("version", spec.get("version"))
        if validate:
            log.info(f"Validating spec against schema: {self.schema}")
            schema.validate(spec, self.schema, version=self.version)
        super().__init__(spec, channels=spec["channels"])
        self.measurement_names = [measurement["name"] for measurement in self.get("measurements", [])]
        self.observations = {observation["name"]: observation["data"] for observation in self["observations"]}
        if config_kwargs:
            raise exceptions.Unsupported(f"Unsupported options were passed in: {list(config_kwargs)}.")

    def __eq__(self, other):
        return isinstance(other, Workspace) and dict(self) == dict(other)

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def __repr__(self):
        return object.__repr__(self)

    def get_measurement(self, measurement_name=None, measurement_index=None) -> dict[str, Any]:
        """Returns the measurement of this name, or at this place, or the first one.

        Raises
        ------
        InvalidMeasurement
        """
        if not self.measurement_names:
            raise exceptions.InvalidMeasurement("No measurements have been defined.")
        if measurement_name is not None:
            if measurement_name not in self.measurement_names:
                raise exceptions.InvalidMeasurement(f"no measurement by name '{measurement_name}' was found in the workspace, pick from: {self.measurement_names}")
            measurement = self["measurements"][self.measurement_names.index(measurement_name)]
        else:
            if measurement_index is None and len(self.measurement_names) > 1:
                log.warning("multiple measurements defined. Taking the first measurement.")
            try:
                measurement = self["measurements"][measurement_index or 0]
            except IndexError:
                raise exceptions.InvalidMeasurement(
                    f"The measurement index {measurement_index} is out of bounds as only {len(self.measurement_names)} measurement(s) have been defined."
                ) from None
        schema.validate(measurement, "measurement.json", version=self.version)
        return measurement

    def model(self, measurement_name=None, measurement_index=None, patches=None, **config_kwargs) -> Model:
        """Returns the model of a measurement, with JSON patches applied to its specification.

        Other arguments are those of `Model`.
        """
        measurement = self.get_measurement(measurement_name, measurement_index)
        config_kwargs.setdefault("poi_name", measurement["config"]["poi"])
        log.debug(f"model being created for measurement {measurement['name']}")
        spec = {"channels": self["channels"], "parameters": measurement["config"]["parameters"]}
        for patch in patches or []:
            spec = apply_patch(spec, patch)
        return Model(spec, **config_kwargs)

    def data(self, model, include_auxdata=True) -> list[float]:
        """Returns observed counts of the model's channels, and its auxiliary data."""
        try:
            counts = [count for channel in model.config.channels for count in self.observations[channel]]
        except KeyError:
            log.error("Invalid channel: the workspace does not have observation data for one of the channels in the model.", exc_info=True)
            raise
        return counts + model.config.auxdata if include_auxdata else counts

    def prune(self, modifiers=None, modifier_types=None, samples=None, channels=None, measurements=None) -> Workspace:
        """Returns a workspace without the things of these names.

        Raises
        ------
        InvalidWorkspaceOperation
            A name that the workspace does not have.
        """
        removed = _join.Names(modifiers or [], modifier_types or [], samples or [], channels or [], measurements or [])
        _join.need(self, removed)
        return type(self)(_join.changed(self, removed, _join.Names({}, [], {}, {}, {})))

    def rename(self, modifiers=None, samples=None, channels=None, measurements=None) -> Workspace:
        """Returns a workspace with other names: dictionaries from the old to the new.

        Raises
        ------
        InvalidWorkspaceOperation
            A name that the workspace does not have.
        """
        renamed = _join.Names(modifiers or {}, [], samples or {}, channels or {}, measurements or {})
        _join.need(self, renamed)
        return type(self)(_join.changed(self, _join.Names([], [], [], [], []), renamed))

    @classmethod
    def combine(cls, left, right, join="none", merge_channels=False) -> Workspace:
        """Returns a workspace of the channels, observations and measurements of two.

        Parameters
        ----------
        join : ``"none"``, ``"outer"``, ``"left outer"`` or ``"right outer"``
            What to do with things of one name: refuse them, refuse them if they differ, keep the
            left one's, keep the right one's.
        merge_channels : bool
            Whether to join the samples of channels of one name; not with ``"none"``.

        Raises
        ------
        InvalidWorkspaceOperation
            Things of one name that cannot be joined, or different versions.
        """
        if join not in cls.valid_joins:
            raise ValueError(f"Workspaces must be joined using one of the valid join operations ({cls.valid_joins}); not {join}")
        if merge_channels and join == "none":
            raise ValueError(f"You can only merge channels using the 'outer', 'left outer', or 'right outer' join operations; not {join}")
        if join in ("left outer", "right outer"):
            log.warning("You are using an unsafe join operation. This will silence exceptions that might be raised during a normal 'outer' operation.")
        return cls(_join.combined(left, right, join, merge_channels))

    @classmethod
    def sorted(cls, workspace) -> Workspace:
        """Returns a workspace with channels, samples, modifiers, measurements, parameters and
        observations by name.
        """
        spec = copy.deepcopy(dict(workspace))

        def by_name(entry) -> Any:
            return entry["name"]

        for key in ("channels", "measurements", "observations"):
            spec[key].sort(key=by_name)
        for channel in spec["channels"]:
            channel["samples"].sort(key=by_name)
            for sample in channel["samples"]:
                sample["modifiers"].sort(key=lambda modifier: (modifier["name"], modifier["type"]))
        for measurement in spec["measurements"]:
            measurement["config"]["parameters"].sort(key=by_name)
        return cls(spec)

    @classmethod
    def build(cls, model, data, name="measurement", validate=True) -> Workspace:
        """Returns a workspace of `model` and the observed `data` (B, or B + K), with one
        measurement."""
        config = model.config
        parameters = [
            {
                "bounds": [list(pair) for pair in config.param_set(of).suggested_bounds],
                "inits": config.param_set(of).suggested_init,
                "fixed": config.param_set(of).suggested_fixed_as_bool,
                "name": of,
            }
            for of in config.par_map
        ]
        spec = {
            "channels": copy.deepcopy(model.spec["channels"]),
            "version": schema.version,
            "measurements": [{"name": name, "config": {"poi": config.poi_name or "", "parameters": parameters}}],
            "observations": [{"name": channel, "data": list(data[config.channel_slices[channel]])} for channel in config.channels],
        }
        return cls(spec, validate=validate)
