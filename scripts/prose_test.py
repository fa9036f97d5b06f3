"""Tests of prose.py and prose_docs.py: what they find, and that rewrapping changes nothing but line breaks."""

import ast
import contextlib
import io
import re
import unittest

import prose
import prose_docs

LONG = "word " * 30


def says(line, path="crates/x/src/a.rs"):
    return [finding.text for finding in prose.word_findings(line, path)]


def wide(text, path):
    return [finding.line for finding in prose.width_findings(text, path)]


class Words(unittest.TestCase):
    def test_a_banned_word_is_found_with_the_better_one(self):
        [finding] = prose.word_findings("// fine\n// the slope of -ln L", "crates/x/src/a.rs")
        self.assertEqual(str(finding), "crates/x/src/a.rs:2: `slope`: say gradient (vector), derivative (one number)")

    def test_parts_of_identifiers_are_found(self):
        for line in ("let held_there = 1;", "fn refuse_twins() {}", "struct RowSlopes;", "fn across_folds()", "is_held"):
            self.assertTrue(says(line), line)

    def test_calls_that_hold_and_things_that_are_no_things_are_found(self):
        for line in ("hold_one(a)", "// this is no minimum", "a back end"):
            self.assertTrue(says(line), line)
        for line in ("threshold(a)", "// there is no document", "a backend"):
            self.assertEqual(says(line), [], line)

    def test_legitimate_words_are_left_alone(self):
        for line in (
            "values.iter().fold(0.0, f64::max)",
            "the folder, a manifold, unfolding",
            "two degrees of freedom",
            "a lock is held by the thread",
            "`...` stands for any lines",
            "the upholder withheld it",
            "followed by a comma",
        ):
            self.assertEqual(says(line), [], line)

    def test_warm_starts_are_not_followed(self):
        path = "crates/ns-inference/src/hypotest.rs"
        for line in ("self.test.follow(data)", "pub(crate) fn following(", "only_follows: bool,", "let followed: Vec<f64> = x;", "// basins are followed"):
            self.assertTrue(says(line, path), line)
        for line in (
            "// the limits follow from the data",
            "fn counts_follow_the_poisson_distribution() {",
            "// as follows:",
            "// what follows, and (what follows)",
        ):
            self.assertEqual(says(line, path), [], line)
        self.assertEqual(says("on_device.follow(stream)?;", "bindings/ns-py/src/batch.rs"), [])

    def test_batch_elements_are_not_rows(self):
        for line, path in (
            ('format!("row {row} of {n_rows}: ")', "crates/ns-compute/src/accel/error.rs"),
            ("    pub row: usize,", "crates/ns-inference/src/differentiable/points.rs"),
            ('f"row {int(bad.nonzero()[0])} of {len(bad)}: "', "bindings/ns-py/python/nextstat/torch/_resident.py"),
            ("Err(AccelError::Input { row, n_rows, error })", "bindings/ns-py/src/batch.rs"),
        ):
            self.assertTrue(says(line, path), line)
        self.assertEqual(says("let row = shape.row(&at.jacobian, slot);", "crates/ns-inference/src/differentiable/a.rs"), [])

    def test_the_glossary_may_name_what_it_rejects(self):
        self.assertEqual(says("one that a fit leaves at a given value. (Not *held*.)", "docs/glossary.md"), [])

    def test_the_changelog_may_name_old_identifiers(self):
        self.assertEqual(says("- `Thrower` is now `ToySampler`.", "CHANGELOG.md"), [])
        self.assertNotEqual(says("- The slope is exact.", "CHANGELOG.md"), [])

    def test_names_of_types_are_no_matter_for_markdown(self):
        self.assertEqual(says("Thrown in from the left: Crew, Share", "docs/a.md"), [])

    def test_aliases_keep_old_names(self):
        self.assertEqual(says("pub type MetalTensor = DeviceTensor;"), [])
        self.assertNotEqual(says("let tensor = MetalTensor::new();"), [])


class Width(unittest.TestCase):
    def test_comments_of_configuration_are_measured(self):
        text = f"#!/bin/sh {LONG}\n# {LONG}\nkey: value  # {LONG}\n  # {LONG}\n"
        for path in ("Cargo.toml", "Makefile", "CITATION.cff", ".github/workflows/ci.yml", ".ci/run"):
            self.assertEqual(wide(text, path), [2, 4], path)

    def test_comments_of_a_line_of_their_own_are_measured(self):
        text = f"// {LONG}\nlet x = 1; // {LONG}\n/// {LONG}\n"
        self.assertEqual(wide(text, "a.rs"), [1, 3])

    def test_docstrings_and_comments_of_python_are_measured(self):
        text = f'"""Short.\n\n{LONG}\n"""\n# {LONG}\nx = "{LONG}"\n'
        self.assertEqual(wide(text, "a.py"), [3, 5])

    def test_tables_code_headings_links_and_html_are_not(self):
        text = f"# {LONG}\n\n| a | b |\n|---|---|\n| {LONG} | b |\n\n```\n{LONG}\n```\n\n[a]: {LONG}\n<p {LONG}>\n"
        self.assertEqual(wide(text, "a.md"), [])

    def test_what_cannot_be_broken_is_not(self):
        self.assertEqual(wide("// https://example.org/" + "x" * 120, "a.rs"), [])


class Wrapping(unittest.TestCase):
    def fixed(self, text, path):
        once = prose.fix_width(text, path)
        self.assertEqual(prose.fix_width(once, path), once, "it is stable")
        self.assertEqual(wide(once, path), [])
        return once

    def test_words_stay_and_lines_get_short(self):
        once = self.fixed(f"    /// {LONG}\n    /// more\n    fn f() {{}}\n", "a.rs")
        lines = once.split("\n")
        self.assertTrue(all(len(line) <= 100 for line in lines))
        self.assertTrue(all(line.startswith("    /// ") for line in lines[:-2]))
        self.assertEqual(once.replace("///", "").split(), (LONG + "more fn f() {}").split())

    def test_short_paragraphs_stay_as_they_are(self):
        text = "// one\n// two\n"
        self.assertEqual(prose.fix_width(text, "a.rs"), text)

    def test_lists_keep_their_items_and_their_indent(self):
        once = self.fixed(f"- {LONG}\n- b\n\n1. {LONG}\n   c\n", "a.md")
        self.assertEqual([line[:2] for line in once.split("\n") if line and line[0] != " "], ["- ", "- ", "1."])
        self.assertIn("\n  word", once)
        self.assertIn("\n   word", once)

    def test_code_tables_headings_and_art_are_untouched(self):
        code = f"/// ```\n/// {LONG}\n/// ```\n/// # Errors\n/// | a | {LONG} |\n/// |---|---|\n/// | b | {LONG} |\n"
        self.assertEqual(prose.fix_width(code, "a.rs"), code)
        art = f"// a    b    {LONG}\n// ┌──┐ {LONG}\n"
        self.assertEqual(prose.fix_width(art, "a.rs"), art)
        usage = f'"""Does it.\n\n    tool.py {LONG}\n"""\n'
        self.assertEqual(prose.fix_width(usage, "a.py"), usage)

    def test_doctests_and_fields_of_docstrings_are_untouched(self):
        text = f'''def f():
    """Does it.

    Parameters
    ----------
    x : float
        {LONG}

    Examples
    --------
    >>> f("{LONG}")
    {LONG}
    """
'''
        once = self.fixed(text, "a.py")
        self.assertIn(f'>>> f("{LONG}")\n    {LONG}\n', once)
        self.assertIn("    x : float\n        word", once)
        self.assertEqual(once.split(), text.split())

    def test_a_docstring_of_one_line_keeps_its_quotes(self):
        once = self.fixed(f'def f():\n    """{LONG.strip()}."""\n', "a.py")
        value = ast.get_docstring(ast.parse(once).body[0])
        self.assertEqual(value.split(), (LONG.strip() + ".").split())

    def test_a_line_does_not_begin_with_a_mark(self):
        for mark in ("-", "+", "1.", "#", ">", "|", "="):
            for shift in range(6):
                text = "x" * shift + " " + "word " * 18 + "word " + mark + " " + "word " * 20
                once = prose.fix_width(f"// {text}\n", "a.rs")
                self.assertFalse([line for line in once.split("\n")[1:] if line.startswith(f"// {mark} ")], once)

    def test_code_in_a_line_stays_whole(self):
        text = "word " * 17 + "`nextstat fit examples/simple.json --summary` more words\n"
        self.assertIn("`nextstat fit examples/simple.json --summary`", prose.fix_width(text, "a.md"))

    def test_admonitions_are_wrapped_within(self):
        once = self.fixed(f"!!! note\n\n    {LONG}\n", "a.md")
        self.assertTrue(all(line.startswith("    word") for line in once.split("\n")[2:] if line))

    def test_comments_in_raw_strings_are_part_of_the_string(self):
        text = f'let source = r#"\n// {LONG}\n"#;\n'
        self.assertEqual(prose.fix_width(text, "a.rs"), text)


class Documentation(unittest.TestCase):
    RUST, PYTHON = "crates/x/src/a.rs", "bindings/ns-py/python/nextstat/a.py"

    def rust(self, documentation, above="", path=RUST):
        return prose_docs.without_verb(path, f"{documentation}\n{above}fn f() {{}}\n")

    def test_a_noun_at_the_beginning_is_found_at_its_line(self):
        [(line, message)] = self.rust("\n/// The angle of a point.\n///\n/// Zero at the best fit.")
        self.assertEqual(line, 2)
        self.assertIn("`f` is described as `The angle of a point.`", message)
        for first in ("Points of a spline.", "`params` with one moved.", "x + y.", "Whether it ends.", "Return a name.", "# Safety", "Pairs, sorted."):
            self.assertTrue(self.rust(f"/// {first}"), first)

    def test_verbs_are_accepted_also_where_they_look_like_plurals(self):
        for first in ("Returns the angle.", "Fixes, in `domain`, two.", "Pairs the values of an option.", "Tests a toy.", "Numbers `items`."):
            self.assertEqual(self.rust(f"/// {first}"), [], first)

    def test_attributes_of_one_or_several_lines_may_be_between(self):
        for above in ("#[inline]\n", "#[expect(\n    unsafe_code,\n    reason = \"x\"\n)]\n"):
            self.assertTrue(self.rust("/// A point.", above), above)
            self.assertEqual(self.rust("/// Returns a point.", above), [], above)

    def test_claims_attributes_of_python_and_tests_may_begin_with_a_noun(self):
        self.assertEqual(self.rust("/// The name.", "#[getter]\n"), [])
        self.assertEqual(self.rust("/// The rule.", "#[test]\n"), [])
        self.assertEqual(self.rust("/// The rule.", path="crates/x/tests/a.rs"), [])
        self.assertEqual(self.rust("/// The rule.\nstruct A;\n"), [])

    def test_docstrings_are_checked_but_for_those_of_properties(self):
        text = 'def f():\n    """A name."""\n\n\nclass A:\n    @property\n    def g(self):\n        """A name."""\n'
        [(line, message)] = prose_docs.without_verb(self.PYTHON, text)
        self.assertEqual(line, 2)
        self.assertIn("`f`", message)
        self.assertEqual(prose_docs.without_verb("scripts/a.py", text), [])


class Command(unittest.TestCase):
    def test_the_list_of_words_compiles_and_prints(self):
        for rule, pattern, _ in prose.compiled(prose.RULES):
            self.assertTrue(rule.say and isinstance(pattern, re.Pattern))

    def test_paths_that_do_not_exist_are_refused(self):
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            prose.tracked(["no/such/path"])


if __name__ == "__main__":
    unittest.main()
