#!/usr/bin/env python3
"""Write docs/reference/json.md from the JSON Schemas of the documents.

json_page.py --write docs/reference/json.md     writes the page
json_page.py --check docs/reference/json.md     exit code 1 if the page is not what would be written
"""
import argparse
import json
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
SCHEMAS = ROOT / "crates/nextstat/schemas"
REFERENCE = "urn:nextstat:schema:definitions:1#/$defs/"

INTRODUCTION = """# JSON documents

Almost every verb writes one JSON object. Python's results have the same keys as attributes, and in
`to_dict()` and `to_json()`. This page is made of the JSON Schemas of these documents by
`make json-page`; do not edit it.

`completions`, `man`, `patchset list` and `schema` without a name write text; `digest` writes text,
with `--json` an object of digests by algorithm; `combine`, `convert`, `decorrelate`, `prune`,
`rename`, `sort` and `patchset apply` write workspaces; `patchset extract` writes the operations of
a patch, with `--with-metadata` the patch with its name, its values and the metadata of the set.

Types: *number* is a JSON number, or `null` where it is not finite or does not exist. Shapes: P is
the number of parameters, in the order of `par_names`. -ln L has no unit; yields are events;
parameters have the units of the model.

## Schemas

Each document names its schema in `$schema`: `urn:nextstat:schema:NAME:VERSION`. The version rises
when a key is removed or changes its meaning. New keys do not raise it, so a program should ignore
keys that it does not know. A schema (JSON Schema, draft 2020-12) lists every key and refuses
others. `nextstat schema` prints the names, and `nextstat schema NAME` a schema, which needs no
other file:

```console
$ nextstat schema --output-file names.txt
$ nextstat schema limit --output-file limit.schema.json
$ nextstat limit examples/simple.json --output-file limit.json
```

Python has them as `nextstat.json_schema(name)`, and any validator checks a document:

```python
import nextstat

limits = nextstat.upper_limit(nextstat.load_workspace("examples/simple.json"))
schema = nextstat.json_schema("limit")
assert limits.to_dict()["$schema"] == schema["$id"]
```

A document inside another one, such as the `fit` of a report or the `result` of a patch, has the
keys of its procedure only, without `$schema`, `nextstat_version`, `measurement` and `provenance`.

## Words

A word means the same in every document:

| Word | Meaning |
|---|---|
| `poi` | the parameter of interest: an object with its `name`, its `index`, and what was found about it |
| `parameter`, `parameters` | name of the parameter that a row or a scan is about; of two, or rows about parameters |
| `par_names` | names of the parameters, in the order of the vectors beside them |
| `bestfit`, `uncertainty` | best-fit value of a parameter, and its standard deviation |
| `bestfit`, `uncertainties` | the same of all parameters (P), beside `par_names` |
| `fit` | the fit that a result refers to |
| `mu` | a value of the parameter of interest, whatever its name, that is tested or assumed |
| `cl` | a confidence level |
| `level` | the value of CLs at a limit |
| `outcome` | why a fit stopped |
| `n_toys`, `n_toys_wanted` | toys that were made, and that were asked for; so with data sets |
| `n_…` | a count |

Keys that pyhf has are pyhf's: `CLs_obs`, `CLs_exp`, `mle_parameters`, `twice_nll`, those of
`inspect` and of patch sets.
"""

COMMON = """## Keys of many documents

| Key | Type | Meaning |
|---|---|---|
"""

SHARED = """## Shared objects

What several documents have, or one has in several places.
"""

#: Keys that the sections of documents leave out.
HEAD = ("$schema", "nextstat_version", "measurement", "provenance", "warnings", "converged", "complete", "par_names", "device")


def load(name):
    return json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))


class Page:
    """The text of the page, and the definitions that it has to describe."""

    def __init__(self):
        self.definitions = load("definitions")["$defs"]
        self.shown = []

    def resolved(self, schema):
        """Returns the schema that a reference means, with its own description."""
        if "$ref" not in schema:
            return schema
        target = self.definitions[schema["$ref"].removeprefix(REFERENCE)]
        return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}

    def properties(self, schema):
        """Returns the properties of an object and of its groups, and the required ones."""
        found, required = dict(schema.get("properties", {})), set(schema.get("required", ()))
        for part in schema.get("allOf", ()):
            inner, needed = self.properties(self.resolved(part))
            found, required = {**inner, **found}, required | needed
        return found, required

    def type_of(self, schema):
        schema = self.resolved(schema)
        if "properties" in schema or "allOf" in schema:
            return "object"
        options = schema.get("anyOf") or schema.get("oneOf")
        if options:
            words = list(dict.fromkeys(self.type_of(option) for option in options))
            return " or ".join(sorted(words, key=lambda word: word == "null"))
        if "const" in schema or "enum" in schema:
            return "text"
        kinds = schema.get("type", "any")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if "number" in kinds:
            return "number or text" if "string" in kinds else "number"
        words = {"string": "text", "integer": "integer", "boolean": "true or false", "object": "object", "null": "null", "array": self.list_type(schema), "any": "any"}
        return " or ".join(words[kind] for kind in kinds)

    def list_type(self, schema):
        if "prefixItems" in schema:
            return "list"
        n = schema.get("maxItems")
        if n is not None:
            return f"list of {n}"
        return f"list of {self.type_of(schema['items']).removesuffix(' or null')}" if "items" in schema else "list"

    def link(self, schema):
        """Returns the definition of an object that the value is, or has entries of."""
        for inner in (schema, schema.get("items", {}), *schema.get("anyOf", ())):
            name = inner.get("$ref", "").removeprefix(REFERENCE)
            if not name or name.endswith("_fields"):
                continue
            target = self.definitions[name]
            if target.get("type") == "object" or "oneOf" in target:
                if name not in self.shown:
                    self.shown.append(name)
                return name
        return None

    def meaning(self, schema):
        text = self.resolved(schema).get("description", "")
        values = self.resolved(schema).get("enum")
        if values:
            text += ": " + ", ".join(f"`{value}`" for value in values) if len(values) < 8 else ""
        link = self.link(schema)
        return f"{text}: [{link}](#{link})" if link else text

    def rows(self, schema, prefix="", skip=()):
        """Yields a row for each key, and for those of objects in it without a section of their own.
        """
        properties, required = self.properties(schema)
        for key, value in properties.items():
            if key in skip and self.is_common(key, value):
                continue
            kind = self.type_of(value) + ("" if key in required else ", optional")
            yield f"| `{prefix}{key}` | {kind} | {self.meaning(value)} |"
            if self.link(value) is None:
                yield from self.inner_rows(value, f"{prefix}{key}")

    def is_common(self, key, schema):
        """Whether the key means what it means in every document."""
        return key == "$schema" or schema.get("$ref") == REFERENCE + key

    def inner_rows(self, schema, place):
        for inner in schema.get("anyOf", ()) or [schema]:
            if "properties" in inner:
                yield from self.rows(inner, f"{place}.")
            elif isinstance(inner.get("items"), dict) and "properties" in inner["items"]:
                yield from self.rows(inner["items"], f"{place}[].")
        for option in schema.get("oneOf", ()):
            if "properties" in option:
                yield from self.rows(option, f"{place}.")

    def table(self, schema, skip=()):
        return "| Key | Type | Meaning |\n|---|---|---|\n" + "\n".join(self.rows(schema, skip=skip)) + "\n"

    def section(self, name):
        schema = load(name)
        properties, _ = self.properties(schema)
        common = ", ".join(f"`{key}`" for key in HEAD if key in properties and self.is_common(key, properties[key]))
        text = textwrap.fill(f"{schema['description']}", 100, break_on_hyphens=False, break_long_words=False)
        also = textwrap.fill(f"Common keys: {common}.", 100, break_on_hyphens=False)
        return f"## {name}\n\n{text}\n\n{self.table(schema, HEAD)}\n{also}\n"

    def common(self):
        """Returns the table of the keys in HEAD."""
        rows = ["| `$schema` | text | which document this is, and the version of its schema |"]
        rows += [f"| `{key}` | {self.type_of(self.definitions[key])} | {self.meaning({'$ref': REFERENCE + key})} |" for key in HEAD[1:]]
        return COMMON + "\n".join(rows) + "\n"

    def definition(self, name):
        schema = self.definitions[name]
        text = textwrap.fill(schema["description"][0].upper() + schema["description"][1:] + ".", 100, break_on_hyphens=False, break_long_words=False)
        if "oneOf" not in schema:
            return f"### {name}\n\n{text}\n\n{self.table(schema)}"
        parts = [f"{option['description'][0].upper()}{option['description'][1:]}:\n\n{self.table(option)}" for option in schema["oneOf"] if "properties" in option]
        return f"### {name}\n\n{text}\n\n" + "\n".join(parts)

    def text(self):
        common = self.common()
        parts = [INTRODUCTION, common, *(self.section(name) for name in names()), SHARED]
        # A definition may need others.
        done = 0
        while done < len(self.shown):
            parts.append(self.definition(self.shown[done]))
            done += 1
        return "\n".join(parts)


def names():
    """Returns the names of the schemas, in the order of the command."""
    table = (ROOT / "crates/nextstat/src/schema.rs").read_text("utf-8").partition("\nschemas! {\n")[2].partition("\n}")[0]
    return re.findall(r'"([\w-]+)": \d+,', table)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--check", type=pathlib.Path)
    arguments = parser.parse_args()
    text = Page().text()
    if arguments.write:
        arguments.write.write_text(text, "utf-8")
    if arguments.check and arguments.check.read_text("utf-8") != text:
        sys.exit(f"{arguments.check} is not up to date: `make json-page` writes it")


if __name__ == "__main__":
    main()
