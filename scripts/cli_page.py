#!/usr/bin/env python3
"""Write docs/cli.md: what every verb shares, and the help text of each, as the built command prints
it.

    cli_page.py --nextstat target/release/nextstat --write docs/cli.md
"""
import argparse
import pathlib
import subprocess

SHARED = """# The command

`nextstat VERB [WORKSPACE|-]`. JSON goes to standard output, words for people to standard error. The help texts below are what `-h` prints; a test compares them.
Written by `make cli-page`; do not edit.

What every verb shares:

- A workspace is pyhf JSON (schema 1.0.0), plain, `.gz` or `.zst`; `-` is standard input, `--input FILE` the same as the argument.
- JSON has four spaces of indentation and sorted keys, as Python's `json.dumps(indent=4, sort_keys=True)`; numbers that are not finite are `null`.
- `--output-file` writes the whole file or nothing.
- Errors are `error: …` with the file, the JSON pointer, and often a `hint: …`; exit code 2, nothing written.
- Messages and summaries escape control, bidirectional and invisible characters of names; JSON has names as they are.
- Optional values take an equals sign: `--minos=NAME`, `--multi-start=100`, `--asimov=0`.
- Results are the same to the bit for any `--threads`.
- The `nextstat` that the Python package brings has three verbs more, `xml2json`, `json2xml` and `contrib download`: see [compatibility.md](compatibility.md#histfactory-xml).
- Work of more than half a second shows on a terminal how far it is; Ctrl-C stops it and keeps what is done (exit code 130).

`evaluate` reads a JSON list of parameter vectors in pyhf's order and prints for each `twice_nll`, its `gradient`, and `expected_data` (main bins, then auxiliary data).
"""


def help_text(nextstat, verb):
    """What the command says of `verb`, 100 columns wide."""
    flag = "-h" if verb else "--help"
    command = [nextstat, *verb, flag]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"COLUMNS": "100"})
    return flag, done.stdout.rstrip()


def verbs(nextstat):
    """Every verb with help of its own, as lists of words, in the order of the help."""
    def commands(verb):
        _, text = help_text(nextstat, verb)
        listed = text.partition("Commands:\n")[2].partition("\n\n")[0]
        return [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "]

    for word in commands([]):
        if word in ("help", "completions"):
            continue
        yield [word]
        yield from ([word, part] for part in commands([word]) if part != "help")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nextstat", required=True)
    parser.add_argument("--write", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    parts = [SHARED]
    for verb in [[], *verbs(arguments.nextstat)]:
        flag, text = help_text(arguments.nextstat, verb)
        words = " ".join(verb)
        parts.append(f"## {' '.join(['nextstat', *verb])}\n\n```console\n$ nextstat {f'{words} {flag}'.strip()}\n{text}\n```\n")
    arguments.write.write_text("\n".join(parts))


if __name__ == "__main__":
    main()
