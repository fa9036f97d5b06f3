//! The page: a template with its style, its script and its data.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const TEMPLATE: &str = include_str!("../assets/template.html");
const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");

/// Returns the page that shows `data`, as [`data`](crate::data) returns it.
#[must_use]
pub fn page(data: &Value) -> String {
    let title = data["title"].as_str().unwrap_or_default();
    let digest = STANDARD.encode(Sha256::digest(SCRIPT));
    let parts = [
        ("title", &*text(title)),
        ("style", STYLE),
        ("data", &json(data)),
        ("script", SCRIPT),
        ("script_sha256", &digest),
    ];
    fill(TEMPLATE, &parts)
}

/// Replaces `{{name}}` by the part of that name, in one pass: what a part contains stays.
fn fill(template: &str, parts: &[(&str, &str)]) -> String {
    let mut page = String::with_capacity(template.len() + parts.iter().map(|(_, part)| part.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        page.push_str(before);
        let Some((name, after)) = after.split_once("}}") else { break };
        page.push_str(parts.iter().find(|(known, _)| *known == name).map_or("", |(_, part)| part));
        rest = after;
    }
    page + rest
}

/// Escapes text for an element or an attribute.
fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // Those of bidirectional text would change the order of what follows.
            c if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                escaped.push('\u{fffd}');
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Returns JSON text that cannot end the element that it is in.
fn json(data: &Value) -> String {
    data.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_are_not_searched_for_placeholders() {
        let parts = [("a", "{{b}}"), ("b", "2")];
        assert_eq!(fill("<{{a}}|{{b}}|{{c}}>", &parts), "<{{b}}|2|>");
    }

    #[test]
    fn names_cannot_become_markup() {
        let name = "</script><script>alert(1)</script><!--&\"'\u{1b}";
        let data = json!({"title": name, "report": {"measurement": name}});
        let page = page(&data);
        assert!(!page.contains("alert(1)</script>") && page.contains("&lt;/script&gt;"));
        let start = page.find(r#"id="report-data">"#).expect("the data") + r#"id="report-data">"#.len();
        let end = start + page[start..].find("</script>").expect("the end of the data");
        assert_eq!(serde_json::from_str::<Value>(&page[start..end]).expect("JSON"), data);
    }

    #[test]
    fn the_policy_allows_the_script_and_nothing_else() {
        let page = page(&json!({"title": ""}));
        let digest = STANDARD.encode(Sha256::digest(SCRIPT));
        assert!(page.contains(&format!("script-src 'sha256-{digest}'")) && page.contains("default-src 'none'"));
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
    }
}
