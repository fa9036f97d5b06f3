//! Trees, places, and what is refused.

use super::*;

fn refused(text: &str) -> String {
    let error = parse(text).expect_err("refused");
    error.hint().map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}"))
}

#[test]
fn elements_keep_attributes_text_and_places() {
    let text = "\u{feff}<?xml version=\"1.0\"?>\n<!DOCTYPE A SYSTEM 'A.dtd'>\n<A é='1'\n  B = \"&lt;&#65;\tx\">\n a<!-- c -->\
                <C/>b &amp; <![CDATA[<d>]]></A>\n";
    let root = parse(text).expect("XML");
    assert_eq!((root.name.as_str(), root.children[0].name.as_str()), ("A", "C"));
    assert_eq!(root.text, "\n ab & <d>");
    let attributes: Vec<(&str, &str)> = root.attributes.iter().map(|a| (a.name.as_str(), a.value.as_str())).collect();
    assert_eq!(attributes, [("é", "1"), ("B", "<A x")]);
    assert_eq!(place(text, root.offset).to_string(), "at line 3, column 1");
    assert_eq!(place(text, root.attributes[1].offset).to_string(), "at line 4, column 3");
    assert_eq!(place(text, root.children[0].offset).to_string(), "at line 5, column 13");
}

#[test]
fn what_is_not_xml_is_refused_with_its_place() {
    assert_eq!(
        refused("<A>\n<B></C></A>"),
        "invalid XML: ill-formed document: expected `</B>`, but `</C>` was found at line 2, column 4"
    );
    assert_eq!(refused("<A>\n<B>"), "the document breaks off: `B` is not closed at line 2, column 4");
    assert_eq!(refused("<A/><B/>"), "expected one element on the top level, found a second one at line 1, column 5");
    assert_eq!(refused("{}"), "expected an element, found text at line 1, column 1");
    assert_eq!(refused(" <!-- nothing -->"), "the document is empty");
    assert_eq!(refused("<A x='1' x='2'/>"), "invalid XML: an attribute has a second value at line 1, column 10");
    assert_eq!(refused("<A x=1/>"), "invalid XML: expected the value of an attribute in quotes at line 1, column 6");
    assert!(refused("<A").starts_with("invalid XML: "));
    assert!(refused("<A><!-- </A>").starts_with("invalid XML: "));
}

#[test]
fn nothing_of_a_document_type_is_expanded() {
    let bomb =
        "<!DOCTYPE A [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;\"><!ENTITY f SYSTEM \"/etc/passwd\">]>\n<A>&b;&f;</A>";
    assert_eq!(
        refused(bomb),
        "unknown entity `&b;` at line 2, column 4; entities of a DTD are not read: write out what it stands for"
    );
    assert!(refused("<!DOCTYPE A [<!ENTITY a \"ha\">]><A x='&a;'/>").contains("`a`"));
}

#[test]
fn deep_documents_end_in_an_error() {
    assert!(refused(&"<A>".repeat(100_000)).starts_with("elements are nested deeper than"));
}
