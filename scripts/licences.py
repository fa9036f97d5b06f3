#!/usr/bin/env python3
"""Compare the licence of every crate that we build with with the list in deny.toml; a stand-in
where cargo-deny is not installed.

Reads `cargo metadata`, standard library only. An expression passes if some choice of its `OR`
branches is allowed altogether.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def allowed_licences():
    text = (ROOT / "deny.toml").read_text()
    block = re.search(r"^allow = \[(.*?)^\]", text, re.S | re.M).group(1)
    return set(re.findall(r'"([^"]+)"', block))


def is_allowed(expression, allowed):
    """Whether an SPDX expression (`A OR (B AND C)`, old style `A/B`) is met by `allowed`."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def choice():
        met = together()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            met = together() or met
        return met

    def together():
        met = single()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            met = single() and met
        return met

    def single():
        token = tokens.pop(0)
        if token == "(":
            met = choice()
            tokens.pop(0)
            return met
        while tokens and tokens[0] == "WITH":
            token += " " + tokens.pop(0) + " " + tokens.pop(0)
        return token in allowed

    return choice() and not tokens


def main():
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    allowed = allowed_licences()
    bad = []
    for package in metadata["packages"]:
        licence = package["license"]
        if licence is None or not is_allowed(licence, allowed):
            bad.append(f"{package['name']} {package['version']}: {licence or 'no licence stated'}")
    if bad:
        print("licences that deny.toml does not allow:", *sorted(bad), sep="\n  ", file=sys.stderr)
        return 1
    print(f"licences: {len(metadata['packages'])} packages, all allowed by deny.toml")
    return 0


if __name__ == "__main__":
    sys.exit(main())
