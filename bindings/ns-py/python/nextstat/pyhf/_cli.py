"""The verbs of pyhf's command tree that are Python's: `xml2json` and `contrib download`; and
`json2xml`, which is passed on to the engine's command.

The `nextstat` command that comes with the Python package has them; ``python -m nextstat.pyhf`` is
another way to them.
"""

import argparse
import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from .._internal import command, escape, write_whole
from . import exceptions

# Exit code of bad input or usage.
_UNUSABLE = 2

_MISTAKES = (
    ET.ParseError,
    ImportError,
    KeyError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
    exceptions.InvalidArchive,
    exceptions.InvalidArchiveHost,
    exceptions.InvalidSpecification,
    exceptions.Unsupported,
)


def main(arguments=None, program="python -m nextstat.pyhf"):
    """Does what `arguments` ask; the exit code."""
    from ._patch import JsonPatchException, JsonPointerException

    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["json2xml"]:
        return command(["nextstat", *given])
    options = _parser(program).parse_args(given)
    try:
        options.run(options)
    except (*_MISTAKES, JsonPatchException, JsonPointerException) as error:
        print(f"error: {escape(str(_said(error)), keep_lines=True)}", file=sys.stderr)
        if getattr(error, "hint", None):
            print(f"hint: {escape(error.hint)}", file=sys.stderr)
        return _UNUSABLE
    return 0


def _said(error):
    """Returns what went wrong; of the system's errors the file comes first."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"cannot read or write `{error.filename}`: {error.strerror[:1].lower()}{error.strerror[1:]}"
    if isinstance(error, exceptions.InvalidSpecification):
        return f"{error.parent.message} at `{_pointer(error.parent.path)}`"
    # The text of a `KeyError` is quoted.
    return error.args[0] if isinstance(error, KeyError) and error.args else error


def _pointer(path):
    """Returns a path as a JSON pointer."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        super().error(escape(message))


def _parser(program):
    parser = _Parser(prog=program, description=__doc__.partition("\n\n")[0])
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    _add_xml2json(verbs)
    _add_json2xml(verbs)
    contrib = verbs.add_parser("contrib", help="downloads").add_subparsers(required=True, metavar="VERB")
    _add_download(contrib)
    return parser


def _add_xml2json(verbs):
    verb = verbs.add_parser("xml2json", help="a workspace from HistFactory XML and ROOT files")
    verb.add_argument("entrypoint_xml", metavar="ENTRYPOINT_XML", help="the top-level file")
    verb.add_argument("--basedir", default=".", metavar="PATH", help="what names of files in XML are relative to")
    mount = "a local folder, and the name of that folder in XML"
    verb.add_argument("-v", "--mount", action="append", default=[], type=_mount, metavar="LOCAL:XML", help=mount)
    verb.add_argument("--output-file", metavar="FILE", help="where the workspace goes, instead of standard output")
    _add_choice(verb, "track_progress", "--track-progress", "--hide-progress", default=None)
    _add_choice(verb, "validation_as_error", "--validation-as-error", "--validation-as-warning", default=True)
    verb.set_defaults(run=_xml2json)


def _add_choice(verb, name, yes, no, default):
    verb.add_argument(yes, dest=name, action="store_true", default=default)
    verb.add_argument(no, dest=name, action="store_false")


def _mount(text):
    local, colon, mounted = text.rpartition(":")
    if not (local and colon and mounted):
        raise argparse.ArgumentTypeError(f"`{text}` is not two paths with a colon between them")
    return Path(local), Path(mounted)


def _xml2json(options):
    from . import readxml

    # A bar is noise in a file, unless the user asks for it.
    shows = sys.stderr.isatty() if options.track_progress is None else options.track_progress
    spec = readxml.parse(
        options.entrypoint_xml, options.basedir, mounts=options.mount, track_progress=shows, validation_as_error=options.validation_as_error
    )
    text = json.dumps(spec, indent=4, sort_keys=True) + "\n"
    if options.output_file is None:
        sys.stdout.write(text)
    else:
        write_whole({Path(options.output_file): text.encode()})


def _add_json2xml(verbs):
    # The engine's command has it, with its own help.
    verb = verbs.add_parser("json2xml", help="HistFactory XML and ROOT files from a workspace", add_help=False)
    verb.set_defaults(run=None)


def _add_download(verbs):
    verb = verbs.add_parser("download", help="fetch and unpack an archive of published likelihoods")
    verb.add_argument("archive_url", metavar="ARCHIVE_URL")
    verb.add_argument("output_directory", metavar="OUTPUT_DIRECTORY")
    verb.add_argument("-v", "--verbose", action="store_true", help="list the files")
    verb.add_argument("-f", "--force", action="store_true", help="from any host")
    verb.add_argument("-c", "--compress", action="store_true", help="keep the archive as it is")
    verb.set_defaults(run=_download)


def _download(options):
    from .contrib.utils import download

    download(options.archive_url, options.output_directory, options.force, options.compress)
    if options.verbose:
        found = Path(options.output_directory)
        for path in sorted(path for path in found.rglob("*") if path.is_file()) if found.is_dir() else [found]:
            print(escape(str(path)))
