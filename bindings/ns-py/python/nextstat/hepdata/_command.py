"""The verb `hepdata`: stored results become a submission to HEPData."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import TYPE_CHECKING, Any

from .._errors import NextstatWarning
from .._nextstat import NextstatError, escape
from .submissions import submission

if TYPE_CHECKING:
    from collections.abc import Sequence

# Exit code of bad input or usage.
_UNUSABLE = 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        super().error(escape(message))


def _named(form):
    def parse(text):
        name, separator, values = text.partition("=")
        if not (name and separator and values):
            raise argparse.ArgumentTypeError(f"expected {form}, not `{text}`")
        return name, values

    return parse


def _parser(program):
    parser = _Parser(prog=f"{program} hepdata", description=__doc__)
    parser.add_argument("results", metavar="RESULT", nargs="+", help="a result that a verb wrote as JSON")
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True, help="where the submission goes")
    parser.add_argument("--workspace", metavar="FILE", help="the likelihood, an additional resource")
    parser.add_argument("--archive", metavar="FILE", help="a .tar.gz or .zip of the submission, to upload")
    parser.add_argument("--comment", metavar="TEXT", default="", help="what applies to all tables, such as the abstract")
    parser.add_argument(
        "--keyword", metavar="NAME=VALUE", action="append", default=[], type=_named("NAME=VALUE"),
        help="cmenergies, observables, reactions or phrases; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--edges", metavar="REGION=E0,E1,…", action="append", default=[], type=_named("REGION=E0,E1,…"),
        help="edges of the bins of a region; repeatable",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace a submission in FOLDER that has other tables or is of other workspaces, too")
    parser.add_argument("--quiet", action="store_true", help="no summary on standard error")
    return parser


def main(arguments: Sequence[str], program: str = "python -m nextstat") -> int:
    """Does what `arguments` ask, the first of which is the verb; returns the exit code."""
    parser = _parser(program)
    options = parser.parse_args(arguments[1:])
    try:
        edges = {region: [float(edge) for edge in values.split(",")] for region, values in options.edges}
    except ValueError as error:
        parser.error(f"--edges: {error}")
    keywords: dict[str, list[str]] = {}
    for name, value in options.keyword:
        keywords.setdefault(name, []).append(value)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NextstatWarning)
        try:
            made = submission(
                options.results, options.output, workspace=options.workspace, archive=options.archive,
                comment=options.comment, keywords=keywords, edges=edges, force=options.force,
            )  # fmt: skip
        except (NextstatError, OSError, ImportError) as error:
            _say(f"error: {_said(error)}")
            if getattr(error, "hint", None):
                _say(f"hint: {error.hint}")
            return _UNUSABLE
    for warning in caught:
        _say(f"warning: {warning.message}")
    if not options.quiet:
        n_tables = len(made.tables)
        _say(f"{n_tables} {'table' if n_tables == 1 else 'tables'} in {made.folder}")
    return 0


def _say(text):
    print(escape(text), file=sys.stderr)


def _said(error):
    """Returns what went wrong; of the system's errors the file comes first."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"cannot read or write `{error.filename}`: {error.strerror[:1].lower()}{error.strerror[1:]}"
    return str(error)
