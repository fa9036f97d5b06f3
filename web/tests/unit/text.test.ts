import assert from "node:assert/strict";
import { test } from "node:test";

import { escapeText, shellQuote, shortText } from "../../src/numbers/escape";
import { matcher } from "../../src/numbers/pattern";

test("controls and invisible characters are escaped as on the terminal", () => {
  assert.equal(escapeText("mu\u202e"), "mu\\u{202e}");
  assert.equal(escapeText("one\ntwo\u0007"), "one\\ntwo\\u{7}");
  assert.equal(escapeText("\u{e0041}\u200b\ufe0f\u3164"), "\\u{e0041}\\u{200b}\\u{fe0f}\\u{3164}");
});

test("ordinary text is unchanged", () => {
  const text = "µ ± 0.5 \\ \"q\" é e\u0301 信号 сигнал إشارة 👍 \u00a0 <b>";
  assert.equal(escapeText(text), text);
});

test("long names keep their beginning and their end", () => {
  assert.equal(shortText("abcdefghijklmnopqrstuvwxyz", 10), "abcdef…xyz");
  assert.equal(shortText("", 10), "(empty)");
});

test("a command can be pasted into a shell", () => {
  assert.equal(shellQuote("--asimov=1"), "--asimov=1");
  assert.equal(shellQuote("my file's"), `'my file'\\''s'`);
  assert.equal(shellQuote("a\u202eb"), "$'a\\U0000202eb'");
  assert.equal(shellQuote(""), "''");
});

test("patterns match whole names, and text without a wildcard any part of one", () => {
  const match = (filter: string, name: string) => matcher(filter)(name);
  assert.ok(match("JES_*", "JES_eff1") && match("jes_*", "JES_eff1") && match("JES_?", "JES_1"));
  assert.ok(!match("JES_*", "my_JES_1") && !match("JES_?", "JES_12"));
  assert.ok(match("eff", "JES_eff1") && !match("eff", "JER_1"));
  assert.ok(match("JES_* JER_*", "JER_1") && match("", "anything") && match("  ", "anything"));
  assert.ok(match("!*_stat", "JES") && !match("!*_stat", "a_stat") && !match("a* !*_stat", "a_stat"));
});

test("brackets and other letters of patterns mean themselves", () => {
  const match = (filter: string, name: string) => matcher(filter)(name);
  assert.ok(match("gamma[*]", "gamma[3]") && match("a.c*", "a.cd") && !match("a.c*", "abcd"));
  assert.ok(match("__proto__", "__proto__") && match("<script>", "<script>alert(1)</script>"));
});

test("a pattern of many stars takes no longer than others", () => {
  assert.ok(!matcher(`${"*a".repeat(40)}*b`)("a".repeat(300)));
});
