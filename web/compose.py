#!/usr/bin/env python3
"""Composes a report page from stored documents, for development and tests.

    compose.py --report report.json [--ranking ranking.json ...] [...] --output page.html

The page is the one that `nextstat report --html` writes: the template and the bundle of
crates/ns-report/assets, with the documents as its data.
"""

import argparse
import base64
import hashlib
import html
import json
import re
from pathlib import Path

ASSETS = Path(__file__).resolve().parents[1] / "crates" / "ns-report" / "assets"
ONE = ("inspect", "check", "gof")
SEVERAL = ("ranking", "scans", "limits")
# What makes text in an element `script` end it, or begin a comment.
ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", required=True, type=Path)
    for name in (*ONE, "fit"):
        parser.add_argument(f"--{name}", type=Path)
    for name in SEVERAL:
        parser.add_argument(f"--{name}", type=Path, nargs="*", default=[])
    parser.add_argument("--title")
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    documents = {name: read(getattr(options, name)) for name in (*ONE, "fit")}
    documents |= {name: [read(path) for path in getattr(options, name)] for name in SEVERAL}
    data = report_data(read(options.report), title=options.title, **documents)
    options.output.write_text(page(data), encoding="utf-8")


def read(path):
    return None if path is None else json.loads(path.read_text(encoding="utf-8"))


def report_data(report, *, title=None, fit=None, scans=(), absent=None, **documents):
    """The data of a page, from the documents as the command writes them."""
    fit_of_report = {key: value for key, value in report["fit"].items() if key not in ("correlation", "mle_parameters")}
    correlation = report["fit"].get("correlation")
    scans = [{key: value for key, value in scan.items() if key != "conditional_bestfit"} for scan in scans]
    data = {
        "title": title or f"{report.get('measurement')}: report",
        "report": {**report, "fit": fit_of_report},
        "correlation": correlation and {"par_names": report["fit"]["par_names"], "millionths": millionths(correlation)},
        "scans": scans,
        "minima": (fit or {}).get("minima"),
        **documents,
    }
    names = ("inspect", "check", "correlation", "ranking", "gof", "scans", "limits", "minima")
    reasons = {name: "this document was not given" for name in names if not data.get(name)}
    return data | {"absent": reasons | (absent or {})}


def millionths(correlation):
    """The triangle below the diagonal in integers; `None` where a correlation is not defined."""
    rows = enumerate(correlation)
    return [[None if value is None else round(1e6 * value) for value in row[:i]] for i, row in rows]


def page(data):
    """The page as text."""
    script = (ASSETS / "report.js").read_text(encoding="utf-8")
    parts = {
        "title": html.escape(data["title"]),
        "style": (ASSETS / "report.css").read_text(encoding="utf-8"),
        "data": json.dumps(data, separators=(",", ":"), allow_nan=False).translate(ESCAPES),
        "script": script,
        "script_sha256": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    template = (ASSETS / "template.html").read_text(encoding="utf-8")
    # In one pass: the data may contain the text of a placeholder.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


if __name__ == "__main__":
    main()
