//! JSON of files: a duplicate key in one object is an error, as everything that can be read in two
//! ways.
//!
//! The format leaves open which of two values counts, and readers differ. All other errors are
//! `serde_json`'s.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::mapped::{read_input, read_text};
use crate::error::{Error, Problem};

/// Reads the document in the file at `path`.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    parse(&read_text(path)?).map_err(|problem| Error::malformed(path, "the file", problem))
}

/// Reads the document in a file or a pipe that the user names.
pub(crate) fn read_given<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    parse(&read_input(path)?).map_err(|problem| Error::malformed(path, "the file", problem))
}

/// Reads the object in the file at `path`.
pub(crate) fn read_object(path: &Path) -> Result<Map<String, Value>, Error> {
    read(path)
}

/// Parses a document; the problem has line and column.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    refuse_duplicate_keys(text)?;
    serde_json::from_str(text).map_err(|error| Problem::Json { message: error.to_string() })
}

/// Refuses a document with a duplicate key in one object; nothing of it is kept.
pub(crate) fn refuse_duplicate_keys(text: &str) -> Result<(), Problem> {
    let (mut reader, path) = (serde_json::Deserializer::from_str(text), RefCell::new(String::new()));
    let read = Each { path: &path }.deserialize(&mut reader).and_then(|()| reader.end());
    read.map_err(|error| Problem::Json { message: error.to_string() })
}

/// Some value of a document.
#[derive(Clone, Copy)]
struct Each<'a> {
    /// The pointer to the value that is being read.
    path: &'a RefCell<String>,
}

impl Each<'_> {
    /// Adds a step of the pointer (RFC 6901), in which `~` and `/` are `~0` and `~1`.
    fn enter(self, step: &str) {
        let mut path = self.path.borrow_mut();
        path.push('/');
        path.push_str(&step.replace('~', "~0").replace('/', "~1"));
    }
}

impl<'de> DeserializeSeed<'de> for Each<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Each<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let outer = self.path.borrow().len();
        for index in 0_usize.. {
            self.enter(&index.to_string());
            if values.next_element_seed(self)?.is_none() {
                break;
            }
            self.path.borrow_mut().truncate(outer);
        }
        self.path.borrow_mut().truncate(outer);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        let outer = self.path.borrow().len();
        while let Some(name) = map.next_key::<String>()? {
            self.enter(&name);
            if names.contains(&name) {
                return Err(A::Error::custom(format_args!("duplicate key `{}`", self.path.borrow())));
            }
            names.insert(name);
            map.next_value_seed(self)?;
            self.path.borrow_mut().truncate(outer);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        parse::<Value>(text).expect_err("wrong").to_string()
    }

    #[test]
    fn a_duplicate_key_is_refused_with_its_place() {
        assert_eq!(message("{\"a\": 1,\n\"a\": 2}"), "duplicate key `/a` at line 2 column 3");
        assert!(message(r#"[{"a": {"b": {}, "c": 0, "b": []}}]"#).starts_with("duplicate key `/0/a/b` at line 1"));
        assert!(
            message(r#"{"x": [{}, {"events": [[1], [2]], "events": 0}]}"#).starts_with("duplicate key `/x/1/events`")
        );
        assert!(message(r#"[[], [[{"a/b~1": 0, "a/b~1": 0}], 1]]"#).starts_with("duplicate key `/1/0/0/a~1b~01`"));
        assert!(message(r#"{"é": 1, "\u00e9": 1}"#).starts_with("duplicate key `/é`"));
    }

    #[test]
    fn different_objects_may_have_the_same_keys() {
        let text = r#"{"a": {"a": [1, -2, 3.5, true, null, "a"], "b": 0}, "b": [{"a": 1}, {"a": 2}]}"#;
        let found: Value = parse(text).expect("JSON");
        assert_eq!(found["b"][1]["a"], 2);
    }

    #[test]
    fn text_that_is_not_json_is_refused() {
        for text in ["", "[", "{} {}", "{\"a\" 1}", "nul", &"[".repeat(100_000)] {
            assert!(message(text).contains("at line 1 column"), "{text}");
        }
    }
}
