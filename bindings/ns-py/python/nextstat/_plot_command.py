"""The verb `plot`: stored results become figures."""

from __future__ import annotations

import argparse
import inspect
import io
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ._errors import ConvergenceError, listed, with_hint
from ._files import write_whole
from ._nextstat import NextstatError, ParameterError, escape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

# Exit codes: of a result whose fits did not converge, and of bad input or usage.
_FAILED, _UNUSABLE = 1, 2


class Kind(NamedTuple):
    """What a figure is drawn from."""

    #: The kinds of documents.
    documents: tuple[str, ...]
    #: Whether several documents make one figure.
    is_of_several: bool = False


#: Figures by the names of their functions. The first one that takes a document is its usual one.
FIGURES = {
    "pulls": Kind(("fit", "report"), is_of_several=True),
    "correlation": Kind(("fit", "report")),
    "ranking": Kind(("ranking",)),
    "scan": Kind(("scan",)),
    "contours": Kind(("contours", "region")),
    "data_mc": Kind(("yields", "report")),
    "regions": Kind(("yields", "report")),
    "toys": Kind(("hypotest-toys",)),
    "brazil": Kind(("hypotest", "hypotest-toys", "limit"), is_of_several=True),
    "limits": Kind(("limit-scan", "every-patch", "limit"), is_of_several=True),
    "exclusion": Kind(("exclusion",)),
    "search": Kind(("search",)),
    "gof": Kind(("gof", "comparison", "report")),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        super().error(escape(message))


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers, such as 0,50,100, not `{text}`") from None


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _pair(form: str, value: Callable[[str], Any] = str) -> Callable[[str], tuple[str, Any]]:
    def parse(text: str) -> tuple[str, Any]:
        name, separator, rest = text.partition("=")
        if not (name and separator and rest):
            raise argparse.ArgumentTypeError(f"expected {form}, not `{text}`")
        return name, value(rest)

    return parse


# `--top all`: None is for an option that was not given.
_ALL = object()


def _top(text: str) -> int | object:
    if text == "all":
        return _ALL
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number or `all`, not `{text}`") from None


_STYLES = ("plain", "ATLAS", "CMS", "LHCb")


def _style(text: str) -> str:
    """Returns the style that a word means, in upper or lower case."""
    return next((known for known in _STYLES if known.lower() == text.lower()), text)


def _width(text: str) -> float | bool:
    """Reads the width that events are counted in; False for bins."""
    if text == "bin":
        return False
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a width or `bin`, not `{text}`") from None


def _words(text: str) -> list[str]:
    return text.split(",")


# Options that are keyword arguments of figures, by the name of the argument: how it is written, and
# what argparse is told.
_LOOK: dict[str, dict[str, Any]] = {
    "style": {"choices": _STYLES, "type": _style, "help": "the look (default: plain)"},
    "label": {"metavar": "TEXT", "help": "such as Internal or Preliminary; the experiment goes before it"},
    "energy": {"metavar": "TEV", "type": _number_or_text, "help": "centre-of-mass energy in TeV"},
    "luminosity": {"metavar": "IFB", "type": _number_or_text, "help": "integrated luminosity in inverse femtobarns"},
}
_OPTIONS: dict[str, dict[str, Any]] = {
    "channel": {"metavar": "NAME", "help": "the region of data_mc"},
    "fit": {"choices": ("prefit", "postfit"), "help": "yields before or after the fit (default: postfit)"},
    "edges": {"metavar": "E0,E1,…", "type": _numbers, "help": "edges of the bins of data_mc"},
    "bins": {"metavar": "A,B,…", "type": _words, "help": "labels of the bins of data_mc; number or edges of the bins of toys"},
    "per": {"metavar": "WIDTH", "type": _width, "help": "the width that events are counted in, or `bin`"},
    "signal": {"metavar": "SAMPLE", "action": "append", "help": "samples for the top of the stack, names and patterns; repeatable"},
    "overlay": {"metavar": "FACTOR", "type": float, "help": "draw signals as dashed lines, too, times this"},
    "order": {"metavar": "SAMPLE", "action": "append", "help": "samples from the top of the stack; repeatable"},
    "labels": {"metavar": "NAME=TEXT", "action": "append", "type": _pair("NAME=TEXT"), "help": "words for a sample or region; repeatable"},
    "colors": {"metavar": "NAME=COLOUR", "action": "append", "type": _pair("NAME=COLOUR"), "help": "the colour of a sample; repeatable"},
    "groups": {
        "metavar": "NAME=A,B,…", "action": "append", "type": _pair("NAME=A,B,…", lambda text: text.split(",")),
        "help": "samples that are summed; repeatable",
    },
    "blind": {"metavar": "REGION", "action": "append", "help": "data that are not drawn, such as SR or SR[2:]; repeatable"},
    "ratio": {"metavar": "LOW,HIGH", "type": _numbers, "help": "ends of the axis of the ratio (default: 0.5,1.5)"},
    "top": {"metavar": "N", "type": _top, "help": "how many samples or parameters are drawn, or `all`"},
    "parameters": {"metavar": "PATTERN", "action": "append", "help": "parameters that are drawn; repeatable"},
    "exclude": {"metavar": "PATTERN", "action": "append", "help": "parameters that are left out; repeatable"},
    "threshold": {"metavar": "R", "type": float, "help": "the smallest correlation that is drawn"},
    "impacts": {"choices": ("classic", "global", "covariance"), "help": "which impacts a ranking shows"},
    "limit": {"metavar": "FILE", "help": "the limits that brazil marks, with tests of several values"},
    "goodness": {"metavar": "FILE", "help": "the goodness of fit that data_mc writes"},
    "values": {"metavar": "V0,V1,…", "type": _numbers, "help": "where each signal is, for limits of several results"},
    "x": {"metavar": "LABEL", "help": "the label of a patch set that is the x axis of limits or of a search"},
    "theory": {
        "metavar": "T0,T1,…|FILE", "action": "append",
        "help": "a prediction that limits are compared with; of an exclusion, a result with varied cross sections; repeatable",
    },
    "numbers": {"choices": ("observed", "expected"), "help": "write CLs or limits into an exclusion plane"},
    "forbidden": {"action": "store_true", "help": "shade y > x of an exclusion plane"},
    "palette": {"choices": ("classic", "accessible"), "help": "colours of expected bands (default: classic)"},
    "log": {"action": argparse.BooleanOptionalAction, "help": "whether the y axis is logarithmic"},
    "xlabel": {"metavar": "TEXT", "help": "the label of the x axis"},
    "ylabel": {"metavar": "TEXT", "help": "the label of the y axis"},
}  # fmt: skip


def _parser(program: str) -> _Parser:
    parser = _Parser(
        prog=f"{program} plot",
        description="Draw a figure of stored results.",
        allow_abbrev=False,
        epilog="Options that a figure does not have are errors. `nextstat.plot` in Python draws the same figures.",
    )
    parser.add_argument("results", metavar="RESULT", nargs="+", help="a result that a verb wrote as JSON, or - for standard input")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the figure; its suffix is the format, such as .pdf, .svg or .png")
    parser.add_argument("--kind", choices=sorted(FIGURES), help="which figure, where a result has several")
    parser.add_argument("--size", metavar="W,H", type=_numbers, help="width and height in inches")
    parser.add_argument("--dpi", metavar="N", type=float, help="pixels per inch of a bitmap (default: 200)")
    parser.add_argument(
        "--rc", metavar="NAME=VALUE", action="append", type=_pair("NAME=VALUE"), default=[], help="a parameter of matplotlib, such as font.size=9; repeatable"
    )
    for title, options in (("look", _LOOK), ("what is drawn", _OPTIONS)):
        group = parser.add_argument_group(title)
        for name, known in options.items():
            group.add_argument(f"--{name}", default=None, **known)
    return parser


def main(arguments: Sequence[str], program: str = "python -m nextstat") -> int:
    """Runs the verb in `arguments[0]` with the other arguments, and returns the exit code."""
    import warnings

    options = _parser(program).parse_args(arguments[1:])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            _plot(options)
        except (NextstatError, OSError, ImportError, ValueError) as error:
            _say(f"error: {_said(error)}")
            if getattr(error, "hint", None):
                _say(f"hint: {error.hint}")  # type: ignore[union-attr]
            return _FAILED if isinstance(error, ConvergenceError) else _UNUSABLE
    for warning in caught:
        _say(f"warning: {warning.message}")
    return 0


def _say(text: str) -> None:
    print(escape(text), file=sys.stderr)


def _said(error: Exception) -> str:
    """Returns what went wrong; of the system's errors the file comes first."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"cannot read or write `{error.filename}`: {error.strerror[:1].lower()}{error.strerror[1:]}"
    return str(error)


def _plot(options: argparse.Namespace) -> None:
    # Before anything that opens a window.
    _require_packages()
    from . import plot

    suffix, sizes = _suffix(options.output), _sizes(options)
    documents = [_read(name) for name in options.results]
    name = options.kind or _usual(documents, options)
    function = getattr(plot, name)
    block = _parameters(options)
    chosen = _chosen(function, name, options)
    with block:
        drawn = function(*_arguments(name, documents, options), **chosen)
    figure = (drawn[0] if isinstance(drawn, tuple) else drawn).figure
    if sizes:
        figure.set_size_inches(sizes)
    write_whole({Path(options.output): _bytes(figure, suffix, options.dpi)})


def _parameters(options: argparse.Namespace) -> AbstractContextManager[None]:
    """Returns a block with the parameters of matplotlib that were given."""
    import matplotlib

    from . import plot

    for name, value in options.rc:
        try:
            matplotlib.RcParams({name: value})
        except (KeyError, ValueError) as error:
            wrong = "there is no such parameter of matplotlib" if isinstance(error, KeyError) else str(error)
            raise ParameterError(f"`--rc {name}={value}`: {wrong}") from None
    if not options.rc:
        return nullcontext()
    style = options.style or "plain"
    # The style of the block has the parameters; that of the figure would replace them.
    options.style = None
    return plot.style(style, rc=dict(options.rc))


def _require_packages() -> None:
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("agg")


def _suffix(output: str) -> str:
    """Returns the format that a file's suffix names."""
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    suffix = Path(output).suffix[1:].lower()
    if suffix not in known:
        wrong = f"there is no format `{suffix}` of figures" if suffix else "it has no suffix"
        raise ParameterError(f"`--output {output}`: {wrong}; choose one of {', '.join(sorted(known))}")
    return suffix


def _sizes(options: argparse.Namespace) -> list[float] | None:
    if options.size is not None and (len(options.size) != 2 or min(options.size) <= 0):
        raise ParameterError("`--size` is a width and a height above 0 in inches, such as 5.4,4.2")
    if options.dpi is not None and not 0 < options.dpi <= 2400:
        raise ParameterError(f"`--dpi` is above 0 and at most 2400, not {options.dpi:g}")
    return options.size


def _read(name: str) -> tuple[str, dict[str, Any]]:
    """Returns the kind of a document, and the document."""
    import json

    from ._nextstat import WorkspaceError, read_document
    from .plot._documents import kind_of

    try:
        text = sys.stdin.buffer.read() if name == "-" else read_document(name)
        document = json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise WorkspaceError(f"`{name}` is not JSON: {error}") from None
    try:
        kind = kind_of(document)
    except WorkspaceError as error:
        raise with_hint(WorkspaceError(f"`{name}`: {error}"), getattr(error, "hint", "")) from None
    if not any(kind in figure.documents for figure in FIGURES.values()):
        drawn = sorted({one for figure in FIGURES.values() for one in figure.documents})
        raise WorkspaceError(f"`{name}`: there is no figure of documents of the kind `{kind}`; there are figures of {listed(drawn)}")
    return kind, document


def _usual(documents: Sequence[tuple[str, Any]], options: argparse.Namespace) -> str:
    """Returns the usual figure of these documents: the first one that has the options."""
    kinds = [kind for kind, _ in documents]
    if len(set(kinds)) > 1:
        error = ParameterError(f"the results are of different kinds: {listed(dict.fromkeys(kinds))}")
        raise with_hint(error, "`--limit FILE` and `--goodness FILE` are for results that go with others")
    from . import plot

    if kinds[0] == "limit" and len(kinds) > 1:
        return "limits"
    if kinds[0] == "hypotest-toys" and len(kinds) > 1:
        return "brazil"
    if kinds[0] == "yields" and options.channel is None and len(documents[0][1].get("channels", ())) > 1:
        return "regions"
    names = [name for name, figure in FIGURES.items() if kinds[0] in figure.documents]
    given = {option for option in _OPTIONS if getattr(options, option) is not None}
    return next((name for name in names if given <= inspect.signature(getattr(plot, name)).parameters.keys()), names[0])


def _chosen(function: Callable[..., Any], name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Returns the keyword arguments of a figure that were given."""
    known = inspect.signature(function).parameters
    given = {option: getattr(options, option) for option in (*_LOOK, *_OPTIONS) if getattr(options, option) is not None}
    given = {option: None if value is _ALL else value for option, value in given.items()}
    for option in ("labels", "colors", "groups"):
        if option in given:
            given[option] = dict(given[option])
    for option in given:
        if option not in known:
            raise ParameterError(f"a figure of `{name}` has no option `--{option}`")
    if "theory" in given:
        given["theory"] = _theory(name, given["theory"])
    if "bins" in given and name == "toys":
        given["bins"] = _bins_of_toys(given["bins"])
    return {option: value for option, value in given.items() if option != "values"}


def _bins_of_toys(words: Sequence[str]) -> int | list[float]:
    """Returns the number of bins, or their edges."""
    try:
        return int(words[0]) if len(words) == 1 else [float(word) for word in words]
    except ValueError:
        raise ParameterError(f"`--bins` of toys are a number of bins or edges, not `{','.join(words)}`") from None


def _theory(name: str, words: Sequence[str]) -> Any:
    """Returns the predictions of limits, or results with varied cross sections of an exclusion."""
    if name == "exclusion":
        return [_read(word)[1] for word in words]
    try:
        found = [_numbers(word) for word in words]
    except argparse.ArgumentTypeError as error:
        raise ParameterError(f"`--theory`: {error}") from None
    return found[0] if len(found) == 1 else {f"Theory {number}": one for number, one in enumerate(found, 1)}


def _arguments(name: str, documents: Sequence[tuple[str, Any]], options: argparse.Namespace) -> list[Any]:
    """Returns the positional arguments of a figure."""
    figure = FIGURES[name]
    for (kind, _), file in zip(documents, options.results):
        if kind not in figure.documents:
            raise ParameterError(f"`{file}` is of the kind `{kind}`, and a figure of `{name}` is drawn from {listed(figure.documents, 'or')}")
    found = [document for _, document in documents]
    if len(found) > 1 and not figure.is_of_several:
        raise ParameterError(f"a figure of `{name}` is drawn from one result, not {len(found)}")
    is_of_limits = name == "limits" and documents[0][0] == "limit"
    if options.values is not None and not is_of_limits:
        raise ParameterError(f"`--values` are of limits of several results; a result of the kind `{documents[0][0]}` has its own")
    if is_of_limits and options.values is None:
        raise with_hint(ParameterError("limits of several signals need `--values`"), "such as --values 300,500,800, one for each result in order")
    if is_of_limits:
        return [options.values, found]
    if name == "brazil" and documents[0][0] != "limit":
        return [found]
    if name in ("limits", "brazil") and len(found) > 1:
        raise ParameterError(f"a figure of `{name}` of a result of the kind `{documents[0][0]}` is drawn from one, not {len(found)}")
    if name == "pulls" and len(found) > 1:
        stems = [Path(file).stem for file in options.results]
        return [dict(zip(stems, found)) if len(set(stems)) == len(stems) else found]
    return [found[0]]


def _bytes(figure: Any, suffix: str, dpi: float | None) -> bytes:
    """Returns the file of a figure, which has the same bytes each time."""
    import matplotlib

    dates = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "nextstat"}):
        options = {} if dpi is None else {"dpi": dpi}
        figure.savefig(buffer, format=suffix, metadata=dates.get(suffix), **options)
    return buffer.getvalue()
