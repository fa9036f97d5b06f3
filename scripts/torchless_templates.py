#!/usr/bin/env python3
"""Renders chat templates as transformers does, for comparison with torchless.

Needs jinja2 from PyPI. Values are written as CPython writes them: `str`, `repr` and `%`.

  fixtures   write templates and what becomes of them to torchless/tests/templates/cases.json
  random     compare --number random templates (needs Rust): a test reads the file that is written
  characters compare the `repr` of every character of this CPython's Unicode
"""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "torchless" / "tests" / "templates" / "cases.json"
CONTENTS = [
    "hi",
    "it's",
    'say "it"',
    "it's \"both\"",
    "tab\there\nnew\\line\r\x00\x1b\x7f",
    "é ß 中 \U0001f600 e\u0301",
    "\u00a0\u00ad\u200b\u2028\u202e\ufeff\ue000\U000e0001",
    "100% %s",
    "",
]
FORMATS = [
    "%s", "%r", "%d", "%i", "%f", "%x", "%%", "%5s|", "%-8s|", "%.2s", "%8.3s|", "%05d", "%+d", "% d", "%-6d|", "%6d", "%.3d",
    "%08.3f", "%.2f", "%+.1f", "%-9.1f|", "%.0f", "%#.0f", "%X", "%#x", "%#010x", "%o", "%#o", "%e", "%.3e", "%g", "%#g", "%.3g",
    "%G", "%E", "%F", "%c", "%a", "%u", "%ld", "%5%", "%y", "%", "%5", "%.", "%*d", "%-*d|", "%.*f", "%+05d", "%-05d|", "%05.3d", "%5r|",
]  # fmt: skip
BY_HAND = [
    "{{ messages }}",
    "{{ messages[0] }}{{ messages[0].items()|list }}",
    "{% for m in messages %}{{ [m.content] }}{{ '%r' % m.content }}{{ '%a' % m.content }}\n{% endfor %}",
    "{{ [true, false, none, 1, -2, 1.0, 1e16, 1e15, 0.0001, 0.00001, 1e300 * 1e10, -1e300 * 1e10, 0.1 + 0.2, -0.0, 3 / 2, 4 / 2] }}",
    "{{ {'a': [1, (2,), ()], 'b': {'c': none}, 1: 'x', 'd': \"it's\"} }}",
    "{{ true }} {{ none }} {{ 1e16 }} {{ 1e-7 }} {{ (1, 'a') }} {{ [] }} {{ {} }} {{ missing }}|{{ [missing] }}",
    "{{ '%s is %d and %.2f' % ('a', 3, 2.5) }} {{ '%s' % 'x' }} {{ '%s' % [1, 'a'] }} {{ '%s' % {'a': 1} }}",
    "{{ '%(a)s %(b)05.1f %(a)r' % {'a': 'x', 'b': 2} }} {{ '%(x(y))s' % {'x(y)': 1} }}",
    "{{ '%s' % (1, 2) }}",
    "{{ '%s %s' % 'a' }}",
    "{{ '%s %s' % [1, 2] }}",
    "{{ 'abc' % [1] }}{{ 'abc' % {'a': 1} }}{{ 'abc' % () }}",
    "{{ 'abc' % 1 }}",
    "{{ '%(a)s' % 1 }}",
    "{{ '%(a)s' % [1] }}",
    "{{ '%(b)s' % {'a': 1} }}",
    "{{ '%(a)s %s' % {'a': 1} }}",
    "{{ '%d' % '1' }}",
    "{{ '%x' % 1.5 }}",
    "{{ '%d' % 1e20 }} {{ '%d' % -1.9 }} {{ '%d' % true }} {{ '%x' % -255 }} {{ '%f' % true }} {{ '%c%c' % ('a', 98) }}",
    "{{ '%d' % (1e300 * 1e10) }}",
    "{% for x in [1e300] %}{% set inf = x * x %}{{ '%05f|%-8f|%+f|%E|%g' % (inf, -inf, inf, inf, inf - inf) }} {{ [inf, inf - inf] }}{% endfor %}",
    "{{ '%s and %s'|format('a', [true]) }} {{ '%(x)s'|format(x=none) }}",
    "{{ '%s'|format(1, x=2) }}",
    "{% set pair = 1, 'b' %}{{ pair }} {{ '%s-%s' % pair }}",
    "{% set a, b = (1, 2), [3] %}{{ a }} {{ b }}",
    "{% for a, b in [(1, 'x'), (2, none)] %}{{ a }}{{ b }}{{ (a, b) }}{% endfor %}",
    "{% for pair in {'a': 1}.items() %}{{ pair }} {{ '%s=%r' % pair }}{% endfor %}{{ {'b': 1, 'a': 2}|dictsort }}{{ {'a': 1}|items|list }}",
    "{{ 'a' ~ [1, 'b'] ~ true ~ none ~ 1e16 ~ (1,) }} {{ ['a', 'b'] ~ 'x' }} {{ 1e16 ~ 1 }}",
    "{{ [1, none, 'a', ['b']]|join(', ') }} {{ ['x', 1]|string }} {{ true|string|length }} {{ [none]|upper }} {{ ['a']|replace('a', 'b') }}",
    "{{ (1 + 2) * 3 }} {{ ((1, 2), (3,))|length }} {{ 2 in (1, 2) }} {{ (1, 2)[-1] }} {{ (1, 2)|list }} {{ (1, 2)|tojson }}",
    "{{ '{} {}'.format([1, 'a'], (none,)) }}",
    "{{ 7 % 3 }} {{ -7 % 3 }} {{ 7.5 % 2 }}",
    "{% macro m(a, b) %}{{ (a, b) }}{% endmacro %}{{ m(1, 'x') }}{{ m([1], ('y',)) }}",
    "{% if (1, 2) == (1, 2) and not () %}yes{% endif %}{% set (x, y) = (1, 2) %}{{ x + y }}",
    "{{ '%.50f' % 0.1 }} {{ '%.30e' % 0.1 }} {{ '%.60g' % 0.1 }} {{ '%g' % 100000 }} {{ '%g' % 1000000 }} {{ '%g' % 0.0001 }} {{ '%g' % 0.00001 }}",
]


def environment():
    """Return Jinja as transformers sets it up."""
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    made.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    return made


def render(jinja, template, messages):
    """Return the text, or None if there is an error."""
    try:
        return jinja.from_string(template).render(messages=messages, add_generation_prompt=True, bos_token="", eos_token="", tools=None, documents=None)
    except Exception:
        return None


def quoted(text):
    """Return a text as a literal of templates."""
    quote = random.choice("'\"")
    escapes = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", quote: "\\" + quote}
    return quote + "".join(escapes.get(character, character) for character in text) + quote


def character():
    """Return a random character that this version of Unicode has."""
    while True:
        number = random.choice([random.randrange(0x20, 0x7F), random.randrange(0xA0, 0x3000), random.randrange(0x110000)])
        found = chr(number)
        if unicodedata.category(found) not in ("Cn", "Cs"):
            return found


def number():
    """Return a random number as templates write it."""
    if random.random() < 0.5:
        return str(random.choice([0, 1, 7, 42, 255, 1000, 65536, 10**9, 2**53, 2**63 - 1, random.randrange(10**6)]))
    exponent = random.randrange(-30, 30)
    return f"{random.random():.{random.randrange(1, 17)}f}e{exponent:+d}" if random.random() < 0.7 else f"{random.randrange(10**6)}.{random.randrange(1000)}"


def value(depth=2):
    """Return a random value as templates write it."""
    kind = random.randrange(13 if depth else 8)
    if kind < 2:
        return quoted("".join(character() for _ in range(random.randrange(6))))
    if kind == 2:
        return f"messages[{random.randrange(len(CONTENTS))}].content"
    if kind < 6:
        return number() if random.random() < 0.7 else f"-{number()}"
    if kind < 8:
        return random.choice(["true", "false", "none", "True", "None", "missing"])
    items = [value(depth - 1) for _ in range(random.randrange(4))]
    if kind < 10:
        return f"[{', '.join(items)}]"
    if kind < 12:
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    return "{" + ", ".join(f"{quoted('key' + str(index))}: {item}" for index, item in enumerate(items)) + "}"


def one_format():
    """Return a random conversion."""
    if random.random() < 0.5:
        return random.choice(FORMATS)
    flags = "".join(random.sample("-+ #0", random.randrange(4)))
    width = random.choice(["", "", str(random.randrange(1, 15))])
    precision = random.choice(["", "", f".{random.randrange(12)}"])
    return f"%{flags}{width}{precision}{random.choice('srdifxXoeEgGFua')}"


def template():
    """Return a random template."""
    formats = [one_format() for _ in range(random.randrange(1, 3))]
    text = quoted("".join(f"{form}{random.choice(['', ' ', 'x'])}" for form in formats))
    forms = [
        lambda: f"{{{{ {value()} }}}}",
        lambda: f"{{{{ {value()} ~ {value()} ~ {value()} }}}}",
        lambda: f"{{{{ {value()}|string }}}}",
        lambda: f"{{{{ [{value()}, {value()}]|join({quoted(', ')}) }}}}",
        lambda: f"{{{{ {text} % {value()} }}}}",
        lambda: f"{{{{ {text} % ({', '.join(value(1) for _ in formats)},) }}}}",
        lambda: f"{{{{ {text}|format({', '.join(value(1) for _ in formats)}) }}}}",
        lambda: f"{{{{ '%(a){one_format()[1:]} %(b)s' % {{'a': {value(1)}, 'b': {value(1)}}} }}}}",
        lambda: f"{{% set x = {value()} %}}{{{{ x }}}}{{% if x %}}{{{{ [x] }}}}{{% endif %}}",
        lambda: f"{{% for k, v in {{'a': {value(1)}, 'b': {value(1)}}}.items() %}}{{{{ k }}}}={{{{ v }}}}{{{{ (k, v) }}}}{{% endfor %}}",
    ]
    return random.choice(forms)()


def document(templates, contents=CONTENTS):
    """Return templates with what becomes of them."""
    jinja = environment()
    messages = [{"role": "user", "content": content} for content in contents]
    cases = [{"template": text, "expected": render(jinja, text, messages)} for text in templates]
    by = f"CPython {platform.python_version()}, Unicode {unicodedata.unidata_version}, jinja2 {jinja2.__version__}, scripts/torchless_templates.py"
    return {"rendered_by": by, "contents": contents, "cases": cases}


def fixtures(_):
    """Write the templates of the tests."""
    random.seed(7)
    each = [f"{{{{ {quoted(form)} % {item} }}}}" for form in FORMATS for item in ("42", "-1.5", "'it'", "(3, 7)")]
    FIXTURES.parent.mkdir(exist_ok=True)
    found = document(BY_HAND + each + [template() for _ in range(150)])
    lines = ",\n".join(json.dumps(case) for case in found.pop("cases"))
    FIXTURES.write_text(json.dumps(found, indent=1)[:-2] + f',\n "cases": [\n{lines}\n ]\n}}\n')


def characters(_):
    """Compare all characters that this version of Unicode has."""
    known = [chr(number) for number in range(0x110000) if unicodedata.category(chr(number)) not in ("Cn", "Cs")]
    contents = ["".join(known[first : first + 500]) for first in range(0, len(known), 500)]
    print(f"{len(known)} characters of Unicode {unicodedata.unidata_version}", flush=True)
    return compare(document(["{% for m in messages %}{{ [m.content] }}{% endfor %}"], contents))


def at_random(args):
    """Compare random templates."""
    random.seed(args.seed)
    return compare(document([template() for _ in range(args.number)]))


def compare(found):
    """Let a test compare templates with what becomes of them here."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.json"
        path.write_text(json.dumps(found))
        command = ["cargo", "test", "--package", "torchless", "--test", "torchless", "--", "--ignored", "--nocapture", "templates_of_a_file"]
        return subprocess.run(command, cwd=ROOT, env={**os.environ, "TORCHLESS_TEMPLATES": str(path)}).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["fixtures", "random", "characters"])
    parser.add_argument("--number", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    return {"fixtures": fixtures, "random": at_random, "characters": characters}[args.what](args)


if __name__ == "__main__":
    sys.exit(main())
