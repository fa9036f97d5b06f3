//! Values of a document with their places, for messages about what is wrong there.

use super::TableError;
use serde_json::Value;

/// Characters of a value that a message shows.
const SHOWN: usize = 60;

/// A value in a document.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub(super) value: &'a Value,
    pointer: String,
}

impl<'a> Place<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, pointer: String::new() }
    }

    /// Returns the member `key`, unless it is absent or null.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Self { value, pointer: self.pointer_to(key) })
    }

    /// Returns the member `key`.
    pub(super) fn member(&self, key: &str) -> Result<Self, TableError> {
        self.get(key).ok_or_else(|| TableError::BadValue {
            pointer: self.pointer_to(key),
            expected: "a value".to_owned(),
            found: self.value.get(key).map_or_else(|| "nothing".to_owned(), Value::to_string),
        })
    }

    fn pointer_to(&self, key: &str) -> String {
        format!("{}/{}", self.pointer, key.replace('~', "~0").replace('/', "~1"))
    }

    /// Returns the error of a value that is not `expected`.
    pub(super) fn bad(&self, expected: impl Into<String>) -> TableError {
        let found = self.value.to_string().chars().take(SHOWN).collect();
        TableError::BadValue { pointer: self.pointer.clone(), expected: expected.into(), found }
    }

    /// Returns the items of a list.
    pub(super) fn items(&self) -> Result<Vec<Self>, TableError> {
        let items = self.value.as_array().ok_or_else(|| self.bad("a list"))?;
        let place = |(i, value)| Self { value, pointer: format!("{}/{i}", self.pointer) };
        Ok(items.iter().enumerate().map(place).collect())
    }

    /// Returns the items of the member `key`, of which there must be `n`.
    pub(super) fn items_of(&self, key: &str, n: usize) -> Result<Vec<Self>, TableError> {
        let list = self.member(key)?;
        let items = list.items()?;
        if items.len() == n { Ok(items) } else { Err(list.bad(format!("a list of {n}"))) }
    }

    pub(super) fn text(&self) -> Result<&'a str, TableError> {
        self.value.as_str().ok_or_else(|| self.bad("text"))
    }

    /// Returns the text of the member `key`.
    pub(super) fn text_of(&self, key: &str) -> Result<&'a str, TableError> {
        self.member(key)?.text()
    }

    /// Returns a number; `None` for null.
    pub(super) fn number(&self) -> Result<Option<f64>, TableError> {
        match self.value {
            Value::Null => Ok(None),
            value => value.as_f64().map(Some).ok_or_else(|| self.bad("a number")),
        }
    }

    /// Returns the number of the member `key`; `None` if it is absent or null.
    pub(super) fn number_of(&self, key: &str) -> Result<Option<f64>, TableError> {
        self.get(key).map_or(Ok(None), |place| place.number())
    }

    /// Returns the numbers of the member `key`, of which there must be `n`.
    pub(super) fn numbers_of(&self, key: &str, n: usize) -> Result<Vec<Option<f64>>, TableError> {
        self.items_of(key, n)?.iter().map(Self::number).collect()
    }

    /// Returns `false` if the document says that a fit did not converge.
    pub(super) fn has_converged(&self) -> bool {
        self.value.get("converged") != Some(&Value::Bool(false))
    }
}
