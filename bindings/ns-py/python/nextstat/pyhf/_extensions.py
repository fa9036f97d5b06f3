"""Keys beyond pyhf's schema in a workspace that is written as HistFactory XML: XML has some of
them, and all others are refused with their place.
"""

import copy
from typing import NamedTuple

from . import exceptions

#: How many things a message lists.
_LISTED = 10

_BEYOND = {
    "constraints": "constraint terms of",
    "beta": "the constrained quantity of",
    "elements": "names of the elements of",
    "interpolation": "the interpolation rule of",
    "scale": "the scale of",
    "normalize": "the normalised template of",
}

#: Settings of a parameter that no likelihood depends on, and that are left out.
_LABELS = ("poi", "groups")

_TYPES = {"formula": "the formula", "morphing": "the morphing", "mcstat": "the mcstat"}


class SplitWorkspace(NamedTuple):
    """A workspace as pyhf's schema has it, the `per_bin` settings of its parameters by name, and
    the JSON pointers of what is left out.
    """

    plain: dict
    per_bin: dict
    lost: list


def split(spec):
    """Returns the parts of a workspace that the engine accepts.

    Templates that are cut off at zero where there is a histosys are what ROOT makes of XML anyway.

    Raises
    ------
    Unsupported
        Everything that XML cannot say.
    """
    splitting = _Splitting()
    plain = copy.deepcopy(spec)
    for c, channel in enumerate(plain["channels"]):
        for s, sample in enumerate(channel["samples"]):
            splitting.sample(sample, f"/channels/{c}/samples/{s}")
    for m, measurement in enumerate(plain["measurements"]):
        splitting.measurement(measurement, f"/measurements/{m}/config", is_first=m == 0)
    splitting.raise_if_any()
    return SplitWorkspace(plain, splitting.per_bin, splitting.lost)


class _Splitting:
    def __init__(self):
        self.kinds, self.per_bin, self.lacking, self.lost = {}, {}, [], []

    def _lack(self, what, name, pointer):
        self.lacking.append(f"{what} `{name}` (`{pointer}`)")

    def _remove(self, found, name, pointer):
        """Removes the keys that XML has not, and notes them."""
        for key in [key for key in found if key in _BEYOND]:
            if found.pop(key) not in (None, False):
                self._lack(_BEYOND[key], name, f"{pointer}/{key}")

    def sample(self, sample, pointer):
        clip = sample.pop("clip", None)
        has_histosys = any(modifier["type"] == "histosys" for modifier in sample["modifiers"])
        if clip is not None and not (clip == 0 and has_histosys):
            self._lack("clipping of the sample", sample["name"], f"{pointer}/clip")
        self._remove(sample, sample["name"], pointer)
        for m, modifier in enumerate(sample["modifiers"]):
            at = f"{pointer}/modifiers/{m}"
            self.kinds[modifier["name"]] = modifier["type"]
            self._remove(modifier, modifier["name"], at)
            if modifier["type"] in _TYPES:
                self._lack(_TYPES[modifier["type"]], modifier["name"], at)

    def measurement(self, measurement, pointer, is_first):
        config = measurement["config"]
        clip = config.pop("clip", {})
        if any(key != "templates" or value != 0 for key, value in clip.items() if value is not None):
            self._lack("clipping in the measurement", measurement["name"], f"{pointer}/clip")
        found = {}
        for p, setting in enumerate(config["parameters"]):
            at = f"{pointer}/parameters/{p}"
            self._remove(setting, setting["name"], at)
            self.lost += [f"{at}/{key}" for key in _LABELS if setting.pop(key, None)]
            found[setting["name"]] = (setting.pop("per_bin", {}), f"{at}/per_bin")
        self._add_per_bin(found, is_first)

    def _add_per_bin(self, found, is_first):
        for name, (terms, pointer) in found.items():
            if terms and self.kinds.get(name) == "shapesys" and terms.get("relative_threshold"):
                self._lack("a threshold of the shapesys", name, pointer)
            if is_first:
                self.per_bin[name] = terms
        for name in {*found, *self.per_bin}:
            terms, pointer = found.get(name, ({}, ""))
            if terms != self.per_bin.get(name, {}):
                self._lack("terms of bins that differ between measurements, of", name, pointer)

    def raise_if_any(self):
        if self.lacking:
            rest = len(self.lacking) - _LISTED
            more = f" and {rest} more" if rest > 0 else ""
            raise exceptions.Unsupported(f"HistFactory XML cannot hold {', '.join(self.lacking[:_LISTED])}{more}")
