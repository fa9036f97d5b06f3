//! `{% generation %} … {% endgeneration %}` of chat templates, as blocks that every Jinja knows.
//!
//! Transformers marks the model's own answers with them, for training. Rendered, they are their
//! contents, and names that are set inside are local. The same holds for `{% with %} … {% endwith
//! %}`, so only the words are replaced: whitespace control stays. Comments, raw blocks and texts of
//! expressions are not changed; neither is a template in which one kind of block is ended as the
//! other, which the parser then refuses.

use std::borrow::Cow;

const BLOCKS: [(&str, &str); 2] = [("generation", "with"), ("endgeneration", "endwith")];

/// Returns `template` with its `generation` blocks in other words.
pub(crate) fn without_generation(template: &str) -> Cow<'_, str> {
    if !BLOCKS.iter().any(|(word, _)| template.contains(word)) {
        return Cow::Borrowed(template);
    }
    let (mut out, mut rest, mut open) = (String::new(), template, Vec::new());
    while let Some(at) = next_tag(rest) {
        let (data, tag) = rest.split_at(at);
        out.push_str(data);
        let length = length(tag);
        let (tag, after) = tag.split_at(length);
        if !is_in_pairs(first_word(tag), &mut open) {
            return Cow::Borrowed(template);
        }
        match BLOCKS.iter().find(|(word, _)| word_of(tag) == Some(word)) {
            Some((word, other)) => out.push_str(&tag.replacen(word, other, 1)),
            None => out.push_str(tag),
        }
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns whether a block of the first word `word` ends the block that it should, if it ends one,
/// and updates the blocks that are `open`.
fn is_in_pairs<'a>(word: &'a str, open: &mut Vec<&'a str>) -> bool {
    match word {
        "generation" | "with" => open.push(word),
        "endgeneration" | "endwith" => return open.pop() == word.strip_prefix("end"),
        _ => {}
    }
    true
}

/// Returns the first word of a block: `with` of `{%- with a = 1 %}`. Comments and expressions have
/// none.
fn first_word(tag: &str) -> &str {
    let inside = tag.strip_prefix("{%").unwrap_or_default();
    let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside).trim_start();
    inside.split(|character: char| character != '_' && !character.is_alphanumeric()).next().unwrap_or_default()
}

/// Returns the place of the next comment, expression or block.
fn next_tag(text: &str) -> Option<usize> {
    ["{%", "{{", "{#"].iter().filter_map(|start| text.find(start)).min()
}

/// Returns the length of the tag that `text` begins with; that of a raw block includes its
/// contents, and a tag without an end has the rest of the text.
fn length(text: &str) -> usize {
    match text.as_bytes().get(1) {
        // `{#}` begins a comment and does not end it.
        Some(b'#') => text[2..].find("#}").map_or(text.len(), |at| 2 + at + 2),
        Some(b'{') => end_of_code(text, "}}"),
        _ if word_of(text) == Some("raw") => end_of_raw(text),
        _ => end_of_code(text, "%}"),
    }
}

/// Returns the word of a block that has nothing else: `{%- word +%}`.
fn word_of(block: &str) -> Option<&str> {
    let inside = block.strip_prefix("{%")?;
    let inside = inside.split_once("%}")?.0;
    Some(inside.strip_prefix(['-', '+']).unwrap_or(inside))
        .map(|inside| inside.strip_suffix(['-', '+']).unwrap_or(inside).trim())
}

fn end_of_raw(text: &str) -> usize {
    let mut at = 2;
    while let Some(next) = text[at..].find("{%") {
        at += next;
        if word_of(&text[at..]) == Some("endraw") {
            return at + text[at..].find("%}").map_or(2, |end| end + 2);
        }
        at += 2;
    }
    text.len()
}

/// Returns the position behind the next `end` that is in no text and no braces.
fn end_of_code(text: &str, end: &str) -> usize {
    let (mut quote, mut is_escaped, mut depth) = (None, false, 0_usize);
    for (at, character) in text.char_indices().skip(2) {
        match (quote, character) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '{') => depth += 1,
            (None, _) if depth == 0 && text[at..].starts_with(end) => return at + end.len(),
            (None, '}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_of_blocks_are_changed() {
        let cases = [
            ("a{% generation %}b{% endgeneration %}c", "a{% with %}b{% endwith %}c"),
            ("{%- generation -%} b {%+endgeneration+%}", "{%- with -%} b {%+endwith+%}"),
            ("{# {% generation %} #}{%\ngeneration\n%}", "{# {% generation %} #}{%\nwith\n%}"),
            (
                "{% raw %}{% generation %}{%- endraw -%}{%generation%}",
                "{% raw %}{% generation %}{%- endraw -%}{%with%}",
            ),
            (
                r#"{{ "{% generation %}" }}{% set a = '\'{% generation %}' %}"#,
                r#"{{ "{% generation %}" }}{% set a = '\'{% generation %}' %}"#,
            ),
            ("{{ {'a': {'b': 1}}['a'] ~ '{% generation %}' }}", "{{ {'a': {'b': 1}}['a'] ~ '{% generation %}' }}"),
            ("{#} {{ #}{% generation %}a", "{#} {{ #}{% with %}a"),
            ("{#} {% generation %}", "{#} {% generation %}"),
            (
                "{% with a = '%}' %}{%generation%}{%- endgeneration %}{% endwith %}",
                "{% with a = '%}' %}{%with%}{%- endwith %}{% endwith %}",
            ),
            ("{% generation %}a{%- endwith %}", "{% generation %}a{%- endwith %}"),
            ("{%+ with a = 1 %}{% endgeneration %}", "{%+ with a = 1 %}{% endgeneration %}"),
            ("{% if generation %}{{ generation }}{% endif %}", "{% if generation %}{{ generation }}{% endif %}"),
            ("{% generation of x %} {% generation", "{% generation of x %} {% generation"),
            ("é { % generation %} {% raw %} {% generation %} é", "é { % generation %} {% raw %} {% generation %} é"),
        ];
        for (template, expected) in cases {
            assert_eq!(without_generation(template), expected);
        }
    }
}
