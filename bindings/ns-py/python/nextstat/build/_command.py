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
from ._outputs import STDOUT, require_other_output
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
    parser.add_argument("-o", "--output-file", metavar="FILE", help="where the workspace goes, instead of standard output")
    parser.add_argument("--report", metavar="FOLDER", help="write figures and a record of what was done to the templates")
    parser.add_argument("--format", choices=FORMATS, default="png", help="the format of the figures")
    parser.add_argument("--patchset", metavar="FILE", help="write the patch set of `Nextstat: PatchSet:`; the workspace is that of the background")
    parser.add_argument("--quiet", action="store_true", help="no summary and no warnings on standard error")
    return parser


def main(arguments: Sequence[str], program: str = "python -m nextstat") -> int:
    """Does what `arguments` ask, the first of which is the verb; returns the exit code."""
    options = _parser(program).parse_args(arguments[1:])
    try:
        _run(options)
    except (NextstatError, OSError, ImportError) as error:
        _say(f"error: {_said(error)}")
        hint = getattr(error, "hint", None)
        if hint:
            _say(f"hint: {hint}")
        return _UNUSABLE
    return 0


def _run(options):
    if options.report is not None:
        # Without matplotlib nothing is written.
        require_matplotlib()
    config = load(options.config)
    _require_other_output(config, options)
    if options.patchset is None:
        result, files = build(config), {}
    else:
        result, patches = build_patch_set(config)
        files = {Path(options.patchset): (json.dumps(patches, indent=4, sort_keys=True) + "\n").encode()}
    if options.output_file is not None:
        files[Path(options.output_file)] = result.text().encode()
    if options.report is not None:
        # Where it cannot be written, nothing else is.
        report(result, options.report, format=options.format)
    write_whole(files)
    if not options.quiet:
        _tell(result)
    if options.output_file is None:
        sys.stdout.write(result.text())


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


def _tell(result: BuildResult) -> None:
    for warning in result.warnings:
        _say(f"warning: {warning}")
    _say(result.summary())


def _say(text):
    print(escape(text, keep_lines=True), file=sys.stderr)


def _said(error):
    """What went wrong; of the system's errors the file comes first."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"cannot read or write `{error.filename}`: {error.strerror[:1].lower()}{error.strerror[1:]}"
    return str(error)
