"""What reading HistFactory XML needs: elements and their attributes, and errors that say where.

The format is that of ROOT's `hist2workspace`: a top-level file with measurements and the names of
one file for each channel, and histograms in ROOT files.
"""

import contextlib
import xml.etree.ElementTree as ET

from .._internal import escape
from . import exceptions
from .schema._validator import Violation

DTD = "HistFactorySchema.dtd"

RELATIVE = "hint: names of files are relative to the folder that `rootdir` (`--basedir`) says"

class Fault(Exception):
    """Something wrong in a file, whose message can be told where it is."""

    def __str__(self):
        # Not quoted, as a `KeyError` would be.
        return escape(Exception.__str__(self), keep_lines=True)


class MissingEntry(Fault, KeyError):
    """An attribute or a histogram that is not there."""


class BadValue(Fault, ValueError):
    """A value that cannot be used."""


class MissingFile(Fault, FileNotFoundError):
    """A file that is not there."""


class Incomplete(Fault, RuntimeError):
    """An element that is not there."""


class NoData(Fault, NotImplementedError):
    """A channel that says that it has no data."""


@contextlib.contextmanager
def within(place):
    """Says of a fault inside that it is in `place`."""
    try:
        yield
    except Fault as fault:
        if not fault.args[0].startswith(f"{place}: "):
            fault.args = (f"{place}: {fault.args[0]}",)
        raise


def import_uproot():
    """Returns uproot, which the extra `xmlio` installs."""
    try:
        import uproot
    except ImportError:
        from .._internal import install_command

        raise ImportError(f"HistFactory XML keeps its histograms in ROOT files, which uproot reads and writes: {install_command('xmlio')}") from None
    return uproot


def label(element):
    """Returns the element as a person would point at it."""
    name = element.get("Name")
    return f"{element.tag} `{name}`" if name else element.tag


def need(element, attribute):
    """Returns the text of an attribute.

    Raises
    ------
    MissingEntry
    """
    try:
        return element.attrib[attribute]
    except KeyError:
        raise MissingEntry(f"{label(element)}: there is no attribute `{attribute}`") from None


def number(element, attribute):
    """Returns the value of an attribute that is a number."""
    text = need(element, attribute)
    try:
        return float(text)
    except ValueError:
        raise BadValue(f"{label(element)}: `{attribute}` is `{text}`, which is not a number") from None


def truth(element, attribute):
    """Returns whether an attribute is `True`, in any case; nothing else but `False` is one."""
    text = need(element, attribute)
    found = {"true": True, "false": False}.get(text.strip().lower())
    if found is None:
        raise BadValue(f"{label(element)}: `{attribute}` is `{text}`, neither `True` nor `False`")
    return found


def read(source, root):
    """Returns the root element of an XML file, which must be a `root`.

    Raises
    ------
    MissingFile, ParseError, InvalidSpecification
    """
    try:
        element = ET.parse(source).getroot()
    except FileNotFoundError:
        raise MissingFile(f"there is no file `{source}`\n{RELATIVE}") from None
    except ET.ParseError as error:
        raise _located(error, source) from None
    if element.tag != root:
        message = f"`{source}` is a <{element.tag}>, where a <{root}> was expected"
        raise exceptions.InvalidSpecification(Violation(message, [], element.tag), DTD)
    return element


def _located(error, source):
    located = ET.ParseError(f"in `{getattr(source, 'name', source)}`: {error}")
    located.code, located.position = error.code, error.position
    return located
