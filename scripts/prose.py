#!/usr/bin/env python3
"""Checks words, line width and documentation of functions, and rewraps what is too wide.

    prose.py [--only PATH ...]              print `file:line: … say …`; exit code 1 if there is any
    prose.py --fix-width [--only PATH ...]  rewrap paragraphs with a line of more than 100 columns
    prose.py --words                        print the list of words as JSON

Comments are those that have a line of their own, in Rust, C++, TypeScript, Python, configuration, make and the
shell, and docstrings. The meaning of the preferred words is in the glossary of the documentation. Standard library only.
"""

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path

import prose_docs

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 100

RUST_LIKE = {".rs", ".h", ".hpp", ".cpp", ".c", ".cu", ".metal", ".ts", ".tsx", ".mjs"}
PYTHON = {".py", ".pyi"}
MARKDOWN = {".md"}
OTHER = {".toml", ".sh", ".yml", ".yaml", ".cff", ""}
# Sources of other projects, data, and the files of this check.
SKIP = re.compile(r"(^|/)(testdata|third_party|site|snapshots)/|\.lock$|LICENSE|^scripts/prose(_test)?\.py$|^benches/RECORD\.md$")

START, END = r"(?<![A-Za-z])", r"(?![A-Za-z])"


@dataclass(frozen=True)
class Rule:
    """A word that is not used here, and what to say instead."""

    pattern: str
    say: str
    # What makes the word legitimate where it matches the same text.
    unless: str = ""
    # Files that the rule is for, and files that it is not for.
    files: str = ""
    not_files: str = ""
    # `code`: everything but Markdown.
    where: str = "any"
    case: bool = False


def word(text: str) -> str:
    """The pattern of a word that may be a part of an identifier."""
    return f"{START}(?:{text}){END}"


def name(text: str) -> str:
    """The pattern of an identifier, alone or as the beginning of a CamelCase one."""
    return rf"\b(?:{text})\b"


FIXES = r"a|the|every|each|this|that|these|its|all|other|some|any|one|two|no|which"
TORCHLESS = r"torchless"

RULES = [
    # Statistics.
    Rule(word("fold(?:s|ed|ing)?"), "same-sign systematic, or reflect", r"\.(?:try_)?fold\(|Iterator::fold|scaffold|(?:k|n|two|ten|hundred)-fold"),
    Rule(r"Fold(?:s|ed|ing)?(?![a-z])", "same-sign systematic, or reflect", case=True),
    Rule(r"\bone-sided (?:systematic|variation|histosys|normsys)s?\b", "same-sign systematic"),
    Rule(r"\brows of (?:parameters|inputs|toys|data|templates)\b|\bRows?(?:Minimizer|Gradients?|Fits?)\b", "batch, batch element, n_batch"),
    Rule(name("Followers?|Followed") + r"|\bgo_on_from\b", "WarmStart, warm_start_from", case=True),
    Rule(
        r"\bonly_follows?\b|\bfollow(?:s|ed|ing)?\b(?=\(|<|: [A-Z&]| = )|\b(?:minima|basins?|branch(?:es)?)\b[^.;]{0,30} followed\b",
        "warm start: from_…, warm_started, update",
        files=r"^crates/(?:ns-inference|ns-testkit|nextstat)/",
        where="code",
        case=True,
    ),
    Rule(
        r"\brow \{\w*(?:[.\[(][^}]*)?\} of\b|\brow: usize\b|(?:InvalidInputs|AccelError::Input) \{ row\b",
        "batch element … of …, n_batch",
        files=r"^(?:crates/ns-(?:compute|inference)/src/(?:accel|differentiable)|bindings/ns-py/(?:src|python))/",
        where="code",
        case=True,
    ),
    Rule(r"\bfits? (?:that )?(?:follow(?:s|ed)?|following) (?:each other|one another|it)\b", "warm start"),
    Rule(word("held"), "fixed", r"(?i)\bheld (?:by|in|on|over|back|open)\b|lock|mutex|memory|buffer|device|held_s\b", not_files=TORCHLESS),
    Rule(r"(?i)\b(?:hold|holds|holding) (?:(?:" + FIXES + r") )*(?:parameters?|nuisance|elements?|mu\b|μ|`mu`|poi\b|at \d)", "fix, fixes, fixing"),
    Rule(r"\bhold(?:_\w+)?\(", "fix, fix_…; of a test helper: compare, require_…", files=r"\.(rs|py|h|cpp)$", where="code"),
    Rule(name("Hold") + r"(?=::|\b)", "BoundStatus", files=r"\.(rs|h|cpp)$", where="code", case=True),
    Rule(r"\bh(?:o|e)ld(?:s|ing)?\b[^.;:]{1,60}\bagainst\b", "compare … with"),
    Rule(word("slopes?"), "gradient (vector), derivative (one number)"),
    Rule(r"Slopes?(?![a-z])", "Gradient, Derivative", case=True),
    Rule(word("twins?"), "reference implementation; of JSON keys: duplicate key"),
    Rule(r"Twins?(?![a-z])", "Reference, Duplicate", case=True),
    Rule(word("freedom"), "ndf, degrees of freedom", r"(?i)degree(?:s|\{\})?[ _-]?of[ _-]?freedom|per (?:degree|dof)|^\s*(?://[/!]?\s*|#\s*)?(?:of )?freedom"),
    Rule(name("Thrower|Thrown|Throwers"), "ToySampler, ToyDataSet", where="code", case=True),
    Rule(name("Twofold") + "|" + word("twofold"), "DoubleDouble"),
    Rule(r"auxiliary data\W{1,12}(?:\d[\d.]*\W{1,8})?event counts|[\"`']event counts[\"`']", "syst. / stat."),
    Rule(r"\bcross(?:es|ed)? (?:the |every )?folds?\b", "reflects"),
    # Types.
    Rule(name("Hints"), "WarmStarts", files=r"crates/ns-(inference|compute|core)/", where="code", case=True),
    Rule(r"\b(?:mod|pyhf::|super::|self::|use) ?(?:typed|careful)\b|\b(?:typed|careful) readers?\b", "fast, diagnose"),
    Rule(
        name("Arrivals?|BatchArrivals?") + "|" + word("(?:has_)?arriv(?:al|als|ed)"),
        "BatchFit, converged",
        not_files=TORCHLESS + r"|^crates/ns-device/emulation/",
    ),
    Rule(name("Crew|Assistant|Ended"), "ExecutionContext, RunStatus", not_files=TORCHLESS, where="code", case=True),
    Rule(name("Ahead"), "DevicePrefit, Prefetch", where="code", case=True),
    Rule(r"\bWords::|\b(?:struct|mut|pub use .*\b|: ) ?Words\b", "RandomStream", where="code", case=True),
    Rule(name("Talk") + r"|\bfn sign\(|\bsay_or_warn\b", "Reporter, Printer, annotate", where="code", case=True),
    Rule(name("Tester|Finder"), "ProfileRatioTest, LimitSolver", where="code", case=True),
    Rule(word("judges?|judged|judging") + r"|\b(?:[Ii]s_)?judged\b", "classify"),
    Rule(word("distrusts?|distrusted|believed"), "warn_if_…"),
    Rule(
        name("Share|Facts|Fault|Foreign") + r"(?=[\s:<,>&){(;]|$)",
        "FitCounts, DeviceProperties, DriverError, ExternalBuffer",
        files=r"\.rs$",
        where="code",
        case=True,
    ),
    Rule(r"(?:struct|DeviceError::|, |: )Grid\b(?! \w)|\bGrid \{", "LaunchDims", files=r"crates/ns-(device|compute)", where="code", case=True),
    Rule(
        r"\bMetal(?:Tensor|TensorBatch|KVCache|MemoryPool)\b",
        "Device…",
        r"\btype Metal|pub use|alias|name = \"Metal",
        not_files=r"CHANGELOG|(^|/)changelog",
        case=True,
    ),
    # English.
    Rule(r"\banswer (?:is|that is|that are) no\b|\banswers that are no\b", "exit code 1"),
    Rule(r"\b(?:somebody|nobody|whoever|whomever)\b", "the caller, the user, no one"),
    Rule(r"\bstands\b(?! for\b)|\bstood\b|\bas they stand\b|\bstand (?:twice|there|here|beside|where|as)\b", "is, was, verbatim"),
    Rule(r"\b(?:one )?that is none\b", "is not a valid …"),
    Rule(r"(?:`|\}) (?:is|are) no (?!longer|more|less|better|smaller|larger|greater)", "is not a valid …, is not a …"),
    Rule(
        r"\b(?:is|are) no (?:channel|proper|minimum|document|parabola|input|formula)",
        "is not a …",
        r"there (?:is|are) no (?:channel|document|input|formula)s?\b",
    ),
    Rule(r"\bsister (?:command|crate|program)\b", "companion"),
    Rule(r"\bin silence\b", "silently"),
    Rule(r"\bback[ -]ends?\b", "backend"),
]


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


# Finding the files


def tracked(only: list[str]) -> list[str]:
    """Paths of the repository's text files, relative to its root; with `only`, those at or below these paths."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    wanted = [Path(path).resolve() for path in only]
    for path in wanted:
        if not path.exists():
            raise SystemExit(f"error: `{path}` does not exist")
    found = []
    for path in sorted(set(filter(None, listed))):
        full = ROOT / path
        if SKIP.search(path) or not full.is_file() or full.is_symlink():
            continue
        if kind(path) is None or (wanted and not any(full == at or at in full.parents for at in wanted)):
            continue
        found.append(path)
    return found


def kind(path: str) -> str | None:
    suffix = Path(path).suffix
    if suffix in RUST_LIKE:
        return "rust"
    if suffix in PYTHON:
        return "python"
    if suffix in MARKDOWN:
        return "markdown"
    if suffix in OTHER and (suffix or Path(path).name in {"Makefile", "run"}):
        return "other"
    return None


# Paragraphs. A file is cut into blocks: lines that may be wrapped, with what stays before each.


@dataclass
class Block:
    """A run of lines, from `start` (from 0), of text that Markdown's rules may be applied to."""

    start: int
    # Before each line: indent and comment marker, or the docstring's opening quotes.
    heads: list[str]
    lines: list[str]
    # After the last line: a docstring's closing quotes.
    tail: str = ""
    # The head of lines that wrapping adds.
    marker: str = ""
    is_docstring: bool = False
    is_markdown: bool = False


COMMENT = re.compile(r"^(\s*)(///|//!|//)(?![/!])( ?)(.*)$")


def rust_blocks(text: str) -> list[Block]:
    """Runs of full-line comments of one indent and one marker."""
    blocks: list[Block] = []
    raw_end = ""
    for number, line in enumerate(text.split("\n")):
        # Comments inside a raw string that spans lines belong to the string.
        if raw_end:
            raw_end = "" if raw_end in line else raw_end
            continue
        found = COMMENT.match(line)
        if not found:
            opened = re.search(r'\br(#*)"', line)
            raw_end = '"' + opened[1] if opened and '"' + opened[1] not in line[opened.end() :] else ""
            continue
        marker = found[1] + found[2]
        last = blocks[-1] if blocks else None
        if last and last.start + len(last.lines) == number and last.marker == marker + " ":
            last.heads.append(marker + found[3])
            last.lines.append(found[4])
        else:
            blocks.append(Block(number, [marker + found[3]], [found[4]], marker=marker + " "))
    return blocks


def python_blocks(text: str) -> list[Block]:
    """Runs of full-line comments, and docstrings."""
    lines = text.split("\n")
    blocks: list[Block] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or not (found := re.match(r"^(\s*#:?)( ?)(.*)$", lines[token.start[0] - 1])):
            continue
        number, last = token.start[0] - 1, blocks[-1] if blocks else None
        if found[3].startswith("!") or re.match(r"(?:noqa|type:|ruff:|fmt:|%%|/// )", found[3]):
            continue
        if last and last.start + len(last.lines) == number and last.marker == found[1] + " ":
            last.heads.append(found[1] + found[2])
            last.lines.append(found[3])
        else:
            blocks.append(Block(number, [found[1] + found[2]], [found[3]], marker=found[1] + " "))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                block = docstring(lines, first.lineno - 1, first.end_lineno - 1)
                if block:
                    blocks.append(block)
    return sorted(blocks, key=lambda block: block.start)


def docstring(lines: list[str], start: int, end: int) -> Block | None:
    """The docstring of these lines; `None` if its quotes are not the usual ones."""
    opening = re.match(r'^(\s*)([rR]?""")', lines[start])
    last = lines[end].rstrip()
    if not opening or not last.endswith('"""') or (end == start and len(last) < len(opening[0]) + 3):
        return None
    indent = opening[1]
    heads, texts = [opening[0]], [lines[start][len(opening[0]) :]]
    for line in lines[start + 1 : end + 1]:
        own = indent if line.startswith(indent) else re.match(r"\s*", line)[0]
        heads.append(own)
        texts.append(line[len(own) :])
    texts[-1] = texts[-1].rstrip()[:-3]
    return Block(start, heads, texts, tail='"""', marker=indent, is_docstring=True)


def markdown_blocks(text: str) -> list[Block]:
    lines = text.split("\n")
    return [Block(0, [""] * len(lines), lines, is_markdown=True)]


def other_blocks(text: str) -> list[Block]:
    """Runs of full-line comments of configuration, make and the shell."""
    blocks: list[Block] = []
    for number, line in enumerate(text.split("\n")):
        found = re.match(r"^(\s*#)( ?)(?!!)(.*)$", line)
        if not found:
            continue
        last = blocks[-1] if blocks else None
        if last and last.start + len(last.lines) == number and last.marker == found[1] + " ":
            last.heads.append(found[1] + found[2])
            last.lines.append(found[3])
        else:
            blocks.append(Block(number, [found[1] + found[2]], [found[3]], marker=found[1] + " "))
    return blocks


BLOCKS = {"rust": rust_blocks, "python": python_blocks, "markdown": markdown_blocks, "other": other_blocks}

FENCE = re.compile(r"^\s*(```+|~~~+)")
ITEM = re.compile(r"^(\s*(?:[-*+]|\d+[.)]) +(?:\[[ x]\] +)?)")
ADMONITION = re.compile(r'^(?:!!!|\?\?\?\+?|===!?\+?) ')
# A line whose breaks mean something, whatever is around it.
VERBATIM = re.compile(
    r"^\s*(?:#{1,6} |\||>>>|\.\.\. |\.\.\.$|</?[A-Za-z!]|\[[^\]]+\]: |\[\^[^\]]+\]: |\*\[[^\]]+\]: |\{[%:#]|@\w+|:::|-{3,}|={3,}|\*{3,}|\$\$|\\\[|\\begin)"
)
TABLE_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
# Columns that are lined up, box drawing, and arrows of diagrams.
ART = re.compile(r"\S {3,}\S|[\u2500-\u257f\u2580-\u259f]|(?:--+>|<--+|==+>)|\\$")
FIELD = re.compile(r"^\s*[*\w][\w*., ]* : \S")


@dataclass
class Paragraph:
    """Lines `first..last` of a block, which are one paragraph."""

    first: int
    last: int
    # Where wrapped lines begin: the indent of the text, or of a list item's text.
    hang: str
    may_wrap: bool


def paragraphs(block: Block) -> list[Paragraph]:
    """The paragraphs of a block; tables, code, headings and other lines that are not text are left out."""
    found: list[Paragraph] = []
    current: list[int] = []
    fence, in_doctest, in_table, in_math, nested, in_field = "", False, False, False, False, False
    front = block.is_markdown and bool(block.lines) and block.lines[0] == "---"

    def close() -> None:
        if current and not any(ART.search(ITEM.sub("", block.lines[i]).strip()) for i in current):
            found.append(paragraph(block, current[0], current[-1]))
        current.clear()

    for i, line in enumerate(block.lines):
        text = line.strip()
        if front:
            front = i == 0 or text != "---"
            continue
        if fence:
            if text.startswith(fence) and not text.strip(fence[0]):
                fence = ""
            continue
        if opened := FENCE.match(line):
            close()
            fence = opened[1]
            continue
        if in_math or text == "$$":
            close()
            in_math = not in_math if text == "$$" else not text.endswith("$$")
            continue
        if in_doctest and text:
            continue
        in_doctest = False
        if not text:
            close()
            in_table = False
            continue
        if text.startswith(">>> "):
            close()
            in_doctest = True
            continue
        next_line = block.lines[i + 1] if i + 1 < len(block.lines) else ""
        if in_table or ("|" in text and "|" in next_line and TABLE_RULE.match(next_line)):
            close()
            in_table = True
            continue
        indent = len(line) - len(line.lstrip())
        if indent == 0:
            nested = bool(ITEM.match(line) or ADMONITION.match(line)) or (nested and bool(current))
            in_field = False
        in_field |= bool(block.is_docstring and FIELD.match(line))
        is_code = indent >= 4 and not nested and not current and not in_field
        if not block.is_docstring and not block.is_markdown and indent >= 4 and not nested:
            is_code = not current or not ITEM.match(block.lines[current[0]])
        if is_code or VERBATIM.match(line) or ADMONITION.match(line) or line.startswith("\t"):
            close()
            continue
        if current and starts_anew(block, current, line):
            close()
        current.append(i)
        if line.endswith(("  ", "\\")) and block.is_markdown:
            close()
    close()
    return found


def starts_anew(block: Block, current: list[int], line: str) -> bool:
    """Whether `line` begins a paragraph of its own right after the lines `current`."""
    first = block.lines[current[0]]
    item = ITEM.match(first)
    if ITEM.match(line) or line.lstrip().startswith(">") or (block.is_docstring and FIELD.match(line)):
        return True
    indent = len(line) - len(line.lstrip())
    wanted = len(item[1]) if item else len(first) - len(first.lstrip())
    if block.is_docstring and block.heads[current[0]].endswith('"""'):
        return indent > 0
    if block.is_docstring and FIELD.match(first):
        return True
    return indent != wanted and not (item and block.is_markdown)


def paragraph(block: Block, first: int, last: int) -> Paragraph:
    lines = block.lines[first : last + 1]
    item = ITEM.match(lines[0])
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    hang = " " * len(item[1]) if item else indent
    may_wrap = not lines[0].lstrip().startswith(">") and not (block.is_docstring and FIELD.match(lines[0]))
    return Paragraph(first, last, hang, may_wrap)


# Wrapping

# What is not broken: code, links' targets, formulas.
ATOM = re.compile(r"(?:``[^`]+``|`[^`\n]{1,70}`|\$[^$\s][^$\n]{0,70}\$|!\[[^\]]*\]\([^)]*\)|[^\s`$]|[`$])+")
# What means something else at the beginning of a line.
MARK = re.compile(r"^(?:[-+*>|=:]+$|[-+*]$|#+$|\d+[.)]$|>|\||```|~~~|!!!|:::|@\w|>>>|\.\.\.$|SAFETY:|PERF:|TODO|noqa|type:)")


def atoms(text: str) -> list[str]:
    """The pieces between which a line may be broken."""
    return [found[0] for found in ATOM.finditer(text)]


def fill(text: str, first: str, rest: str, tail: str = "") -> list[str]:
    """`text` in lines of at most `WIDTH` columns, the first after `first`, the others after `rest`."""
    out: list[str] = []
    line, head = [], first
    pieces = atoms(text)
    for i, piece in enumerate(pieces):
        end = len(tail) if i + 1 == len(pieces) else 0
        if line and len(head) + len(" ".join([*line, piece])) + end > WIDTH:
            over = [piece]
            while MARK.match(over[0]) and len(line) > 1:
                over.insert(0, line.pop())
            out.append(head + " ".join(line))
            line, head = over, rest
        else:
            line.append(piece)
    out.append(head + " ".join(line) + tail)
    return out


def is_wide(block: Block, part: Paragraph) -> list[int]:
    """The lines of a paragraph that are too wide and could be narrower."""
    wide = []
    for i in range(part.first, part.last + 1):
        tail = block.tail if i + 1 == len(block.lines) else ""
        whole = block.heads[i] + block.lines[i].rstrip() + tail
        is_one = len(atoms(block.lines[i])) - bool(ITEM.match(block.lines[i])) <= 1
        if len(whole) > WIDTH and not is_one:
            wide.append(i)
    return wide


def wrap_paragraph(block: Block, part: Paragraph) -> list[str]:
    lines = block.lines[part.first : part.last + 1]
    item = ITEM.match(lines[0])
    lead = item[1] if item else lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    text = " ".join([lines[0][len(lead) :].strip(), *(line.strip() for line in lines[1:])])
    is_end = part.last + 1 == len(block.lines)
    is_hard = block.is_markdown and lines[-1].endswith(("  ", "\\"))
    ending = (block.tail if is_end else "") + ("  " if is_hard and lines[-1].endswith("  ") else "")
    return fill(text, block.heads[part.first] + lead, block.marker + part.hang, ending)


def fix_width(text: str, path: str) -> str:
    """`text` with every paragraph rewrapped that has a line of more than `WIDTH` columns."""
    lines = text.split("\n")
    for block in reversed(BLOCKS[kind(path)](text)):
        for part in reversed(paragraphs(block)):
            if part.may_wrap and is_wide(block, part):
                at = block.start + part.first
                lines[at : block.start + part.last + 1] = wrap_paragraph(block, part)
    return "\n".join(lines)


# Checking


def width_findings(text: str, path: str) -> list[Finding]:
    found = []
    for block in BLOCKS[kind(path)](text):
        for part in paragraphs(block):
            for i in is_wide(block, part):
                columns = len(block.heads[i] + block.lines[i])
                found.append(Finding(path, block.start + i + 1, f"{columns} columns, say it in lines of {WIDTH}"))
    return found


def masked(line: str, path: str) -> str:
    """A line without what may name a word: the glossary's `(Not …)`, and code in the changelog."""
    line = re.sub(r"\((?:Not|not) [^)]*\*[^)]*\)", "", line)
    if Path(path).name.lower() in {"changelog.md"}:
        line = re.sub(r"`[^`]*`", "``", line)
    return re.sub(r"https?://\S+|\]\([^)]*\)", "", line)


def compiled(rules: list[Rule]) -> list[tuple[Rule, re.Pattern, re.Pattern | None]]:
    flags = [0 if rule.case else re.IGNORECASE for rule in rules]
    return [(rule, re.compile(rule.pattern, flag), re.compile(rule.unless) if rule.unless else None) for rule, flag in zip(rules, flags)]


def word_findings(text: str, path: str, rules=None) -> list[Finding]:
    rules = compiled(RULES) if rules is None else rules
    of = kind(path)
    rules = [entry for entry in rules if re.search(entry[0].files, path) and not (entry[0].not_files and re.search(entry[0].not_files, path))]
    rules = [entry for entry in rules if not (entry[0].where == "code" and of == "markdown")]
    found, seen = [], set()
    for number, line in enumerate(text.split("\n"), 1):
        line = masked(line, path)
        for rule, pattern, unless in rules:
            hit = pattern.search(line)
            if hit and not (unless and unless.search(line)) and (number, hit[0].lower()) not in seen:
                seen.add((number, hit[0].lower()))
                found.append(Finding(path, number, f"`{hit[0].strip()}`: say {rule.say}"))
    return found


def findings(path: str, text: str, rules=None) -> list[Finding]:
    """All that is wrong with a file, by line."""
    found = word_findings(text, path, rules)
    if kind(path) in BLOCKS:
        found += width_findings(text, path)
    found += [Finding(path, line, say) for line, say in prose_docs.without_verb(path, text)]
    return sorted(found, key=lambda finding: finding.line)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="PATH", help="files and folders instead of the whole repository")
    parser.add_argument("--fix-width", action="store_true", help="rewrap what is too wide, and list the files")
    parser.add_argument("--words", action="store_true", help="print the list of words as JSON")
    args = parser.parse_args()
    if args.words:
        print(json.dumps([{"pattern": rule.pattern, "say": rule.say, "unless": rule.unless} for rule in RULES], indent=2, ensure_ascii=False))
        return 0
    paths = tracked(args.only)
    if args.fix_width:
        for path in paths:
            if kind(path) in BLOCKS:
                text = (ROOT / path).read_text("utf-8")
                if (fixed := fix_width(text, path)) != text:
                    (ROOT / path).write_text(fixed, "utf-8")
                    print(path)
        return 0
    rules, n_found = compiled(RULES), 0
    for path in paths:
        for finding in findings(path, (ROOT / path).read_text("utf-8"), rules):
            print(finding)
            n_found += 1
    print(f"{n_found} places in {len(paths)} files" if n_found else f"{len(paths)} files: no banned words, no wide lines", file=sys.stderr)
    return 1 if n_found else 0


if __name__ == "__main__":
    sys.exit(main())
