//! The columns of a record, and the NumPy header that describes them (format 1.0:
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).

use serde_json::{Value, json};

/// The type of a column; all numbers are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// An integer of 64 bits.
    U64,
    /// An integer of 8 bits.
    U8,
    /// A double.
    F64,
    /// An array of doubles of this length.
    F64s(usize),
}

impl ColumnKind {
    fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U64 | Self::F64 => 8,
            Self::F64s(n) => 8 * n,
        }
    }
}

/// A named column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordColumn {
    /// The field's name in NumPy.
    pub name: String,
    /// Its type.
    pub kind: ColumnKind,
}

/// The columns of a record, packed without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLayout {
    columns: Vec<RecordColumn>,
}

impl RecordLayout {
    /// Returns the layout of columns in this order. Names must be plain words.
    #[must_use]
    pub fn new(columns: &[(&str, ColumnKind)]) -> Self {
        let column = |&(name, kind): &(&str, ColumnKind)| RecordColumn { name: name.to_owned(), kind };
        Self { columns: columns.iter().map(column).collect() }
    }

    /// Returns the number of bytes of a record.
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        self.columns.iter().map(|column| column.kind.bytes()).sum()
    }

    /// Returns the range of bytes of column `name` in a record, or `None` if there is no such
    /// column.
    #[must_use]
    pub fn range(&self, name: &str) -> Option<std::ops::Range<usize>> {
        let at = self.columns.iter().position(|column| column.name == name)?;
        let start = self.columns[..at].iter().map(|column| column.kind.bytes()).sum();
        Some(start..start + self.columns[at].kind.bytes())
    }

    /// Returns the columns as a document.
    #[must_use]
    pub(super) fn to_value(&self) -> Value {
        let column = |column: &RecordColumn| match column.kind {
            ColumnKind::U64 => json!([column.name, "u64"]),
            ColumnKind::U8 => json!([column.name, "u8"]),
            ColumnKind::F64 => json!([column.name, "f64"]),
            ColumnKind::F64s(n) => json!([column.name, "f64", n]),
        };
        self.columns.iter().map(column).collect()
    }

    pub(super) fn from_value(value: &Value) -> Option<Self> {
        let column = |entry: &Value| {
            let kind = match (entry[1].as_str()?, &entry[2]) {
                ("u64", Value::Null) => ColumnKind::U64,
                ("u8", Value::Null) => ColumnKind::U8,
                ("f64", Value::Null) => ColumnKind::F64,
                ("f64", n) => ColumnKind::F64s(n.as_u64().filter(|n| *n < 1 << 32)?.try_into().ok()?),
                _ => return None,
            };
            Some(RecordColumn { name: entry[0].as_str()?.to_owned(), kind })
        };
        value.as_array()?.iter().map(column).collect::<Option<_>>().map(|columns| Self { columns })
    }

    /// Returns the header of a file of `n_records`. Its length does not depend on them, so that it
    /// can be renewed in place.
    #[must_use]
    pub(super) fn header(&self, n_records: u64) -> Vec<u8> {
        const PREAMBLE: usize = 10;
        let field = |column: &RecordColumn| match column.kind {
            ColumnKind::U64 => format!("('{}', '<u8')", column.name),
            ColumnKind::U8 => format!("('{}', '|u1')", column.name),
            ColumnKind::F64 => format!("('{}', '<f8')", column.name),
            ColumnKind::F64s(n) => format!("('{}', '<f8', ({n},))", column.name),
        };
        let fields: Vec<String> = self.columns.iter().map(field).collect();
        let text = |n: u64| format!("{{'descr': [{}], 'fortran_order': False, 'shape': ({n},), }}", fields.join(", "));
        let longest = PREAMBLE + text(u64::MAX).len() + 1;
        let text_len = longest.next_multiple_of(64) - PREAMBLE;
        let mut header = b"\x93NUMPY\x01\x00".to_vec();
        // A handful of columns is far below the limit of the format, 65535 bytes.
        header.extend(u16::try_from(text_len).unwrap_or(u16::MAX).to_le_bytes());
        header.extend(format!("{:<width$}\n", text(n_records), width = text_len - 1).into_bytes());
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> RecordLayout {
        RecordLayout::new(&[("toy", ColumnKind::U64), ("status", ColumnKind::U8), ("parameters", ColumnKind::F64s(3))])
    }

    #[test]
    fn headers_follow_numpy_and_have_one_length() {
        let header = layout().header(7);
        assert_eq!(header.len() % 64, 0);
        assert_eq!(header.len(), layout().header(u64::MAX).len());
        let text = String::from_utf8_lossy(&header[10..]).trim_end().to_owned();
        let fields = "('toy', '<u8'), ('status', '|u1'), ('parameters', '<f8', (3,))";
        assert_eq!(text, format!("{{'descr': [{fields}], 'fortran_order': False, 'shape': (7,), }}"));
        assert_eq!(header.last(), Some(&b'\n'));
    }

    #[test]
    fn columns_are_read_back_from_a_document() {
        assert_eq!(RecordLayout::from_value(&layout().to_value()), Some(layout()));
        assert_eq!(layout().range("parameters"), Some(9..33));
        assert_eq!(layout().record_bytes(), 33);
        assert_eq!(RecordLayout::from_value(&json!([["toy", "u16"]])), None);
    }
}
