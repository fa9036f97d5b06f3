"""Checks that documentation of functions begins with a verb in the third person, as `Returns` is.

For the Rust sources of the product and the Python package. Tests, and what Python shows as an
attribute, are left out: a noun is right there. `prose.py` calls this.
"""

import ast
import re

FILES = re.compile(r"^(?:(?:crates/[^/]+|torchless|bindings/[^/]+)/src/.*\.rs|bindings/[^/]+/python/.*\.pyi?)$")
# What begins with a capital, ends in `s`, and is not a verb, or not meant as one.
NOUNS = frozenset(
    "Always Angles Archives Arrays As Axes Bars Bytes Channels Coefficients Columns Contents Contours Correlations "
    "Cosines Counts Derivatives Differences Digits Documents Elements Ensembles Events Examples Factors Files Fields "
    "Gradients Groups Impacts Indices Inputs Intervals Its Keys Limits Lines Measurements Medians Models Modifiers "
    "Multiples Names Numbers Ones Pairs Parameters Paths Points Procedures Products Pulls Ranges Rays Rows Rules "
    "Samples Scales Seconds Sequences Settings Statistics Sums Systematics Tails Templates This Thus Toys Uncertainties "
    "Units Values Variances Warnings Weights Workspaces Yields".split()
)
# These are verbs before a singular, an article or another object: `Pairs the values of …`.
OBJECT = re.compile(r"^(?:a|an|the|each|every|all|both|its|whether|what|how|`.*)$")

RUST_FUNCTION = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?(?:const )?(?:async )?(?:unsafe )?(?:extern \"[^\"]*\" )?fn (\w+)")
# Functions whose documentation says what is claimed, or what an attribute is.
EXEMPT_ATTRIBUTE = re.compile(r"#\[(?:test|getter)\b")
EXEMPT_DECORATORS = frozenset(("property", "cached_property", "setter", "overload"))


def begins_with_verb(text: str) -> bool:
    """Returns whether the first word of `text` looks like a verb in the third person."""
    first, *rest = text.split()[:2] or [""]
    word = first.rstrip(",:")
    if not re.fullmatch(r"[A-Z][a-z]+s", word):
        return False
    return word not in NOUNS or bool(rest and OBJECT.match(rest[0]))


def rust_functions(text: str) -> list[tuple[int, str, str]]:
    """Returns line (from 1), name and first line of the documentation of every function that has
    some."""
    lines = text.split("\n")
    found = []
    for number, line in enumerate(lines):
        if function := RUST_FUNCTION.match(line):
            first = documentation_above(lines, number)
            if first is not None:
                found.append((first + 1, function[1], lines[first].strip()[3:].strip()))
    return found


def documentation_above(lines: list[str], number: int) -> int | None:
    """Returns where the documentation of the function at `number` begins; None without any, or if
    an attribute exempts it."""
    end = number
    while (above := attribute_above(lines, end)) is not None:
        if any(EXEMPT_ATTRIBUTE.search(line) for line in lines[above:end]):
            return None
        end = above
    first = end
    while first > 0 and lines[first - 1].strip().startswith("///"):
        first -= 1
    return first if first < end else None


def attribute_above(lines: list[str], end: int) -> int | None:
    """Returns where the attribute that ends right before `end` begins; it may have several
    lines."""
    if end == 0 or not lines[end - 1].rstrip().endswith("]"):
        return None
    for at in range(end - 1, max(end - 10, -1), -1):
        line = lines[at].strip()
        if line.startswith("#["):
            return at
        if not line or line.startswith("//"):
            return None
    return None


def python_functions(text: str) -> list[tuple[int, str, str]]:
    """Returns line (from 1), name and first line of the docstring of every function that has
    one."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        names = {getattr(one, "id", getattr(one, "attr", "")) for one in node.decorator_list}
        documentation = ast.get_docstring(node)
        if documentation and not names & EXEMPT_DECORATORS:
            found.append((node.body[0].lineno, node.name, documentation.split("\n")[0]))
    return found


def without_verb(path: str, text: str) -> list[tuple[int, str]]:
    """Returns the lines of documentation that do not begin with a verb, each with what to do."""
    if not FILES.match(path):
        return []
    functions = rust_functions(text) if path.endswith(".rs") else python_functions(text)
    say = "begin with a verb in the third person, such as `Returns`"
    return [(line, f"`{name}` is described as `{first[:40]}`: {say}") for line, name, first in functions if not begins_with_verb(first)]
