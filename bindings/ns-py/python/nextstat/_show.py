"""One screen of a result: text for terminals, a table for notebooks."""

from html import escape

# Longer lists are told by their length.
_SHOWN = 12


def _number(value, digits=6):
    return "–" if value is None else f"{value:.{digits}g}"


def _value(value):
    if isinstance(value, float):
        return _number(value)
    if hasattr(value, "shape"):
        if value.ndim == 1 and value.size <= _SHOWN:
            return "[" + ", ".join(_number(float(item)) for item in value) + "]"
        return f"array of shape {value.shape}"
    if isinstance(value, list):
        if all(isinstance(item, (int, float, type(None))) and not isinstance(item, bool) for item in value) and len(value) <= _SHOWN:
            return "[" + ", ".join(_number(item) for item in value) + "]"
        if all(isinstance(item, str) for item in value) and len(value) <= 3:
            return ", ".join(value) if value else "none"
        return f"{len(value)} entries"
    if isinstance(value, dict):
        return f"{len(value)} fields"
    return str(value)


def _fit_rows(result):
    poi = result.poi
    rows = [("converged", str(result.converged)), ("2NLL", f"{result.twice_nll:.10g}"), ("EDM", _number(result.edm, 2))]
    names = [poi] if poi else []
    names += [name for name in result.par_names if name != poi][: _SHOWN - len(names)]
    for name in names:
        at = result.par_names.index(name)
        rows.append((name, f"{_number(float(result.bestfit[at]))} ± {_number(float(result.uncertainties[at]), 4)}"))
    left = len(result.par_names) - len(names)
    if left:
        rows.append(("…", f"and {left} more parameters"))
    return rows


def _rows(name, result):
    if name == "FitResult":
        return _fit_rows(result)
    return [(key, _value(value)) for key, value in result._fields.items() if key != "warnings"]


def text(name, result):
    """As `repr` shows it."""
    rows = _rows(name, result)
    width = max((len(key) for key, _ in rows), default=0)
    lines = [name, *(f"  {key:<{width}}  {value}" for key, value in rows)]
    lines += [f"  warning: {warning}" for warning in result._fields.get("warnings", [])]
    return "\n".join(lines)


def html(name, result):
    """As notebooks show it."""
    body = "".join(f"<tr><th style='text-align:left'>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in _rows(name, result))
    said = "".join(f"<p><b>warning:</b> {escape(warning)}</p>" for warning in result._fields.get("warnings", []))
    return f"<table><caption>{escape(name)}</caption>{body}</table>{said}"
