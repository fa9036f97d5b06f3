#!/usr/bin/env python3
"""Write docs/cli.md from the help texts of the built command; options that verbs share come once.

    cli_page.py --nextstat target/release/nextstat --write docs/cli.md
"""
import argparse
import pathlib
import re
import subprocess
import textwrap

INTRODUCTION = """# The command

Most verbs read a workspace: `nextstat VERB [WORKSPACE|-]`. A terminal gets a table of the result;
a pipe or a file gets all of it as JSON. `digest`, `patchset list`, `schema`, `completions` and
`man` write text. Warnings and errors go to standard error. This page has the help text of each
verb, as `nextstat VERB -h` prints it; tests compare them. It is written by `make cli-page`; do not
edit it.

`nextstat man fit` prints the same as a manual page; `nextstat man --directory
~/.local/share/man/man1` installs a page for every verb, for `man nextstat-fit`.

- A workspace is pyhf JSON (schema 1.0.0), HS3, HistFactory XML or a data card of Combine, plain or
  compressed as `.gz` or `.zst`. `-` is standard
  input. `--input FILE` is the same as the argument.
- JSON has sorted keys and an indentation of four spaces, as Python's
  `json.dumps(indent=4, sort_keys=True)`. Numbers that are not finite are `null`.
- `-o`, `--output-file` writes the complete file or nothing.
- Errors have the form `error: …`, with the file and the JSON pointer, often followed by
  `hint: …`. The exit code is then 2, and no result is written.
- Messages and summaries escape control, bidirectional and invisible characters in names. JSON
  contains names as they are.
- The value of `--minos`, `--multi-start` and `--asimov` may be left out. After a blank, a number,
  or a name that is not one of a file, is the value: `--asimov 0`, `--minos mu`.
- Names of parameters and channels may be patterns, in which `*` stands for any characters and `?`
  for one: `--fix 'JES_*=0'`. A name precedes a pattern.
- Every result has `provenance`: version, command line, digest of the workspace, measurement, data,
  changed settings, device and seed ([JSON documents](reference/json.md)).
- `--format` writes a table of a result instead of JSON, and `nextstat table` that of a stored
  one: [make tables for papers](how-to/tables.md).
- Results do not depend on `--threads`, to the bit.
- `build`, `hepdata`, `plot`, `xml2json` and `contrib` run in the Python package and
  have their own `--help`: see [how to build a workspace](how-to/build.md),
  [submit to HEPData](how-to/hepdata.md), [draw figures](how-to/figures.md) and
  [compatibility.md](compatibility.md#histfactory-xml). A command without the package passes them on
  to `python3 -m nextstat`, or to the Python that `NEXTSTAT_PYTHON` names.
- Work that takes more than half a second shows its progress on a terminal. Ctrl-C stops it and
  keeps the results obtained until then (exit code 130).
- `evaluate` reads a JSON list of parameter vectors in pyhf's order. For each vector it prints
  `twice_nll`, its `gradient`, and `expected_data`: the main bins, then the auxiliary data.
"""

SHARED = """## Shared options

`fit` takes all options that several verbs share. The list leaves out its own options, and the
sections below leave out the shared ones: `...` stands for them, and a line below each block names
those that the verb takes.

"""

#: The verb that has all shared options.
MODEL_VERB = ["fit"]
#: Verbs that must have an option so that it counts as shared.
N_SHARING = 3
#: Verbs without a section: they run elsewhere, or have nothing to say.
LEFT_OUT = ("help", "completions", "man", "build", "hepdata", "plot", "xml2json", "contrib")


def help_text(nextstat, verb):
    """Returns the flag that prints help, and the help of `verb`, 100 columns wide."""
    flag = "-h" if verb else "--help"
    command = [nextstat, *verb, flag]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"COLUMNS": "100"})
    return flag, done.stdout.rstrip()


def verbs(nextstat):
    """Yields every verb with help of its own, as a list of words, in the order of the help."""
    def commands(verb):
        _, text = help_text(nextstat, verb)
        listed = text.partition("Commands:\n")[2].partition("\n\n")[0]
        return [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "]

    for word in commands([]):
        if word in LEFT_OUT:
            continue
        yield [word]
        yield from ([word, part] for part in commands([word]) if part != "help")


def entries(text):
    """Splits a help text into (name, lines).

    Options and the list of exit codes have a name, other lines have None.
    """
    found = []
    for line in text.splitlines():
        option = re.match(r"\s{2,6}(?:-\w, )?(--[\w-]+)", line)
        is_continued = found and found[-1][0] and line.strip() and (found[-1][0] == "exit codes" or line.startswith(" " * 12))
        if line == "Exit codes:":
            found.append(("exit codes", [line]))
        elif option and not (found and found[-1][0] == "exit codes"):
            found.append((option[1], [line]))
        elif is_continued or (found and found[-1][0] == "exit codes"):
            found[-1][1].append(line)
        else:
            found.append((None, [line]))
    return found


def key(name, lines):
    """Identifies an option by its name and its text, however the lines are broken."""
    return name, " ".join(" ".join(lines).split())


def shared_options(helps):
    """Returns the keys of the entries that the model verb and several others have."""
    def named(text):
        return {key(*entry) for entry in entries(text) if entry[0]}

    candidates = named(helps[tuple(MODEL_VERB)])
    return {candidate for candidate in candidates if sum(candidate in named(text) for verb, text in helps.items() if verb) >= N_SHARING}


def block(command, text, is_kept):
    """Returns a console block with the entries that are kept; others become `...`."""
    lines = []
    for name, entry in entries(text):
        if is_kept(name, entry):
            lines += entry
        elif not lines or lines[-1] != "...":
            lines.append("...")
    body = re.sub(r"\n\.\.\.\n\n\.\.\.", "\n...", "\n".join(lines))
    return f"```console\n$ {command}\n{body}\n```\n"


def shared_part(nextstat, text, shared):
    def is_kept(name, entry):
        return name is not None and name != "exit codes" and key(name, entry) in shared

    return SHARED + block(f"{nextstat} {' '.join(MODEL_VERB)} -h", text, is_kept)


def section(verb, flag, text, shared):
    """Returns the section of a verb, with its own options and the names of the shared ones."""
    words = " ".join(["nextstat", *verb])
    def is_kept(name, entry):
        return not verb or name is None or key(name, entry) not in shared

    taken = [name for name, entry in entries(text) if verb and name not in (None, "exit codes", "--help") and key(name, entry) in shared]
    listed = ", ".join(f"`{name}`" for name in taken)
    names = "\n" + textwrap.fill(f"Shared options: {listed}.", 100, break_on_hyphens=False) + "\n" if taken else ""
    return f"## {words}\n\n{block(f'{words} {flag}', text, is_kept)}{names}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nextstat", required=True)
    parser.add_argument("--write", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    all_verbs = [[], *verbs(arguments.nextstat)]
    flags, helps = {}, {}
    for verb in all_verbs:
        flags[tuple(verb)], helps[tuple(verb)] = help_text(arguments.nextstat, verb)
    shared = shared_options(helps)
    parts = [INTRODUCTION, section([], flags[()], helps[()], shared)]
    parts.append(shared_part("nextstat", helps[tuple(MODEL_VERB)], shared))
    parts += [section(verb, flags[tuple(verb)], helps[tuple(verb)], shared) for verb in all_verbs[1:]]
    arguments.write.write_text("\n".join(parts))


if __name__ == "__main__":
    main()
