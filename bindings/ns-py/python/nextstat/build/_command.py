"""The verb `build`: a configuration becomes a workspace, a report, a patch set."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files import write_whole
from .._nextstat import NextstatError, escape
from .._root_files import RootFiles
from ._outputs import STDOUT, Output, add_arguments, require_other_output, say
from .assembly import with_sample_path
from .config import load
from .pipeline import build, build_patch_set
from .reports import FORMATS, report, require_matplotlib, written
from .sources import source_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .pipeline import BuildResult
    from .settings import Config

# Exit code of bad input or usage.
_UNUSABLE = 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        super().error(escape(message))


def _parser(program):
    parser = _Parser(prog=f"{program} build", description=__doc__)
    parser.add_argument("config", metavar="CONFIG", help="a YAML file: a configuration of cabinetry, or one with the section `Nextstat`")
    parser.add_argument("--report", metavar="FOLDER", help="write figures and a record of what was done to the templates")
    parser.add_argument("--format", choices=FORMATS, default="png", help="the format of the figures")
    parser.add_argument("--patchset", metavar="FILE", help="write the patch set of `Nextstat: PatchSet:`; the workspace is that of the background")
    add_arguments(parser)
    return parser


def main(arguments: Sequence[str], program: str = "python -m nextstat") -> int:
    """Does what `arguments` ask, the first of which is the verb; returns the exit code."""
    options = _parser(program).parse_args(arguments[1:])
    try:
        _run(options)
    except (NextstatError, OSError, ImportError) as error:
        say(f"error: {_said(error)}")
        hint = getattr(error, "hint", None)
        if hint:
            say(f"hint: {hint}")
        return _UNUSABLE
    return 0


def _run(options):
    output = Output(options)
    output.require()
    if options.report is not None:
        # Without matplotlib nothing is written.
        require_matplotlib()
    config = load(options.config)
    _require_other_output(config, options)
    if options.patchset is None:
        result, files = build(config), {}
    else:
        result, patches = build_patch_set(config)
        files = {options.patchset: json.dumps(patches, indent=4, sort_keys=True) + "\n"}
    if options.output_file is not None or output.has_json:
        files[options.output_file or STDOUT] = result.text()
    if options.report is not None:
        # Where it cannot be written, nothing else is.
        report(result, options.report, format=options.format)
    write_whole({Path(name): text.encode() for name, text in files.items() if name != STDOUT})
    _tell(result, output, options)
    if STDOUT in files:
        sys.stdout.write(files[STDOUT])


def _require_other_output(config: Config, options: argparse.Namespace) -> None:
    """Refuses results that would replace the configuration, histograms, or each other."""
    grid = config.options.grid
    points = () if options.patchset is None or grid is None else grid.points
    configs = [with_sample_path(config, grid.sample, point.sample_path) for point in points] if grid is not None and points else [config]
    with closing(RootFiles()) as files:
        inputs = [file for one in configs for file in source_of(one, files).files()]
    results = [options.output_file or STDOUT, *filter(None, [options.patchset])]
    if options.report is not None:
        results += written(config, options.report, options.format)
    require_other_output([options.config, *inputs], results)


def _tell(result: BuildResult, output: Output, options: argparse.Namespace) -> None:
    if not output.is_quiet:
        for warning in result.warnings:
            say(f"warning: {warning}")
    if output.table is not None:
        say(result.summary(), output.table)
        if options.output_file is None and not output.has_json:
            say("note: `-o FILE` writes the workspace, and `--json` prints it", output.table)


def _said(error):
    """Returns what went wrong; of the system's errors the file comes first."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"cannot read or write `{error.filename}`: {error.strerror[:1].lower()}{error.strerror[1:]}"
    return str(error)
