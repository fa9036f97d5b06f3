//! Tables of results for papers and notes: typed rows of a document, as LaTeX, Markdown or CSV.
//!
//! A table is made of the JSON document of a result, so its numbers are those of the document, a
//! stored result needs no other fit, and what the document hides stays hidden. `document` reads
//! values with their places, `results` and the files beside it make tables of the kinds of
//! documents, `rounding` rounds, and there is a file for each format.
//!
//! | document | tables, the first by default |
//! |---|---|
//! | `fit` | `parameters`, `pulls`, `correlation`, `covariance` |
//! | `report` | `parameters`, `pulls`, `correlation`, `yields`, `prefit`, `postfit`, `bins`, `goodness` |
//! | `yields` | `yields`, `prefit`, `postfit`, `bins` |
//! | `ranking` | `ranking`, `groups`, `breakdown` |
//! | `limit`, `limit-scan` | `limits` |
//! | `hypotest` | `tests` |
//! | `significance` | `significance` |
//! | `scan` | `scan`, `intervals` of one parameter, `contours` of two |
//! | `contours` | `contours` |
//! | `gof`, `comparison` | `goodness` |
//! | `hypotest-toys` | `tests`, `p_values` |
//! | `toys` | `toys` |
//! | `fits` | `parameters`, `data_sets`, `correlation` |
//! | `exclusion` | `points`, `contours` |
//! | `coverage` | `coverage` |
//! | `region` | `contours`, `points` |
//! | `every-patch`, `every-poi` | those of their results, with a row for each patch and parameter |
//!
//! Numbers of a fit that did not converge are left out.

mod coverage;
mod csv;
mod curves;
mod document;
mod entries;
mod error;
mod fits;
mod goodness;
mod latex;
mod limits;
mod markdown;
mod ranking;
mod results;
mod rounding;
mod signals;
mod toys;
mod yields;

pub use csv::FlatValue;
pub use error::TableError;

use crate::number::significant;
use crate::stored::StoredFit;
use ns_core::pattern::{is_pattern, matches};
use serde_json::Value;
use std::fmt;
use std::str::FromStr;

/// A table with named, typed columns.
///
/// ```
/// use nextstat::tables::{Table, TableFormat, TableRequest};
/// use nextstat::{Analysis, CompiledModel, FitRequest, Settings};
///
/// # let workspace = std::fs::read("../../examples/simple.json").unwrap();
/// let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let fit = Analysis::new(&model, &Settings::default())?.fit(&FitRequest::default())?;
/// let table = Table::of(&fit.document(), &TableRequest::default())?;
/// let markdown = table.text(TableFormat::Markdown);
/// assert!(markdown.contains("| mu | 0.7 ± 0.6 |"), "{markdown}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What the table is called, such as `parameters`.
    pub name: String,
    /// One sentence on what it shows.
    pub caption: String,
    /// The label of LaTeX, such as `tab:parameters`.
    pub label: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each with a cell for every column.
    pub rows: Vec<Row>,
    /// How the numbers were computed, and the warnings of the result.
    pub notes: Vec<String>,
    /// Whether every fit of the result converged; numbers of those that did not are left out.
    pub converged: bool,
    /// Whether columns after the first are the same parameters as the rows.
    is_matrix: bool,
    /// Whether the caption is the caller's, who wrote it for the format.
    has_given_caption: bool,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The name for programs, such as `postfit`.
    pub name: String,
    /// The name for readers, such as `post-fit`.
    pub heading: String,
    /// The unit; `None` where numbers have the unit of their parameter or none.
    pub unit: Option<&'static str>,
    /// What its cells are.
    pub kind: ColumnKind,
}

/// What the cells of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text, such as names.
    Text,
    /// Numbers, shown with this number of significant digits, without zeros at their end.
    Number(usize),
    /// Numbers that are uncertainties themselves, such as impacts: shown with this number of
    /// significant digits, zeros at their end included.
    Digits(usize),
    /// Numbers of order 1, shown with this number of decimals.
    Fixed(usize),
    /// Values with standard deviations.
    Measured,
    /// Values with distances to the ends of an interval.
    Interval,
}

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// A cell for each column.
    pub cells: Vec<Cell>,
    /// Whether a rule separates it from the row above.
    pub has_rule: bool,
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing: there is no number, it is hidden, or it is of a fit that did not converge.
    Empty,
    /// A name.
    Text(String),
    /// A number without uncertainty.
    Number(f64),
    /// A value with its standard deviation, where there is one.
    Measured {
        /// The value.
        value: f64,
        /// Its standard deviation.
        uncertainty: Option<f64>,
    },
    /// A value with the signed distances to the ends of its interval; `None` for an open end.
    Interval {
        /// The value.
        value: f64,
        /// The distance to the lower end, negative.
        down: Option<f64>,
        /// The distance to the upper end, positive.
        up: Option<f64>,
    },
}

/// Which table of a document, and of which rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableRequest {
    /// The name of the table; the first of the document if `None`.
    pub table: Option<String>,
    /// Rows with one of these names, or with a name that matches one of these patterns (`k_*`); all
    /// if empty.
    pub rows: Vec<String>,
    /// The caption instead of ours; LaTeX and Markdown have it as it is.
    pub caption: Option<String>,
    /// The label of LaTeX instead of `tab:` and the name of the table.
    pub label: Option<String>,
}

/// A format of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// A `table` with booktabs, graphicx and siunitx, rounded by the rule of the Particle Data
    /// Group.
    Latex,
    /// Values separated by commas (RFC 4180), all digits.
    Csv,
    /// A pipe table, rounded as LaTeX.
    Markdown,
}

/// A text that names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a format of tables: choose one of `latex`, `csv`, `md`")]
pub struct UnknownFormat {
    text: String,
}

impl TableFormat {
    const NAMES: [(Self, &'static str); 3] = [(Self::Latex, "latex"), (Self::Csv, "csv"), (Self::Markdown, "md")];

    /// Returns what readers choose the format by.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Latex => {
                "For the packages booktabs, graphicx and siunitx, rounded by the rule of the Particle Data Group"
            }
            Self::Csv => "Comma-separated values, with all digits",
            Self::Markdown => "Markdown, rounded as LaTeX",
        }
    }

    /// Returns the name of the format, such as `csv`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(format, _)| *format == self).map_or("", |(_, name)| name)
    }
}

impl FromStr for TableFormat {
    type Err = UnknownFormat;

    /// Reads `latex`, `csv` or `md`.
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let found = Self::NAMES.iter().find(|(_, name)| *name == text).map(|(format, _)| *format);
        found.ok_or_else(|| UnknownFormat { text: text.to_owned() })
    }
}

impl fmt::Display for TableFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Table {
    /// Reads a table from the text of a document.
    ///
    /// # Errors
    /// As [`Table::of`], and a text that is not JSON.
    pub fn from_json(document: &[u8], request: &TableRequest) -> Result<Self, TableError> {
        let text = document;
        let document: Value =
            serde_json::from_slice(text).map_err(|e| TableError::NotJson { reason: e.to_string() })?;
        let table = Self::of(&document, request)?;
        if results::is_fit(&document) {
            StoredFit::require_sound(text)?;
        }
        Ok(table)
    }

    /// Reads a table from a document.
    ///
    /// # Errors
    /// A document of something else, one without such a table, values that are not what they must
    /// be, and names that no row has.
    pub fn of(document: &Value, request: &TableRequest) -> Result<Self, TableError> {
        let mut table = results::table(document, request.table.as_deref())?;
        table.select(&request.rows)?;
        if let Some(caption) = &request.caption {
            table.caption.clone_from(caption);
            table.has_given_caption = true;
        }
        if let Some(label) = &request.label {
            table.label.clone_from(label);
        }
        Ok(table)
    }

    /// Refuses the table `name` of results of the schema `kind`, if those have other tables, before
    /// there is a result.
    ///
    /// # Errors
    /// [`TableError::NoSuchTable`]
    pub fn require(kind: &str, name: &str) -> Result<(), TableError> {
        let known = results::names(kind);
        if known.is_empty() || known.contains(&name) {
            return Ok(());
        }
        Err(TableError::NoSuchTable { name: name.to_owned(), known: known.to_vec() })
    }

    /// Returns what a reader must know of the numbers; `None` if they can be used without.
    #[must_use]
    pub fn alarm(&self) -> Option<String> {
        (!self.converged).then(|| results::LEFT_OUT.to_owned())
    }

    /// Returns the table as text, with a line feed at the end of each line, or as RFC 4180 has them
    /// in CSV.
    #[must_use]
    pub fn text(&self, format: TableFormat) -> String {
        match format {
            TableFormat::Latex => latex::text(self),
            TableFormat::Csv => csv::text(self),
            TableFormat::Markdown => markdown::text(self),
        }
    }

    /// Keeps the rows with a name that one of `wanted` names.
    fn select(&mut self, wanted: &[String]) -> Result<(), TableError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let is_named = |name: &str, wanted: &String| name == wanted || (is_pattern(wanted) && matches(wanted, name));
        let names = |row: &Row| row.cells.iter().filter_map(Cell::name).map(str::to_owned).collect::<Vec<_>>();
        let known: Vec<String> = self.rows.iter().flat_map(names).collect();
        if let Some(name) = wanted.iter().find(|wanted| !known.iter().any(|name| is_named(name, wanted))) {
            let similar = ns_core::similar_name(name, known.iter().map(String::as_str)).map(str::to_owned);
            return Err(TableError::NoSuchRow { name: name.clone(), similar });
        }
        let is_wanted = |name: &str| wanted.iter().any(|wanted| is_named(name, wanted));
        self.rows.retain(|row| row.cells.iter().filter_map(Cell::name).any(is_wanted));
        if self.is_matrix {
            let kept: Vec<bool> =
                self.columns.iter().enumerate().map(|(i, column)| i == 0 || is_wanted(&column.name)).collect();
            let mut is_kept = kept.iter();
            self.columns.retain(|_| is_kept.next() == Some(&true));
            for row in &mut self.rows {
                let mut is_kept = kept.iter();
                row.cells.retain(|_| is_kept.next() == Some(&true));
            }
        }
        Ok(())
    }
}

impl Cell {
    /// Returns the name that the cell is.
    fn name(&self) -> Option<&str> {
        match self {
            Self::Text(name) => Some(name),
            _ => None,
        }
    }

    /// Returns a number, or nothing.
    fn number(value: Option<f64>) -> Self {
        value.map_or(Self::Empty, Self::Number)
    }

    /// Returns a value with its uncertainty, or nothing.
    fn measured(value: Option<f64>, uncertainty: Option<f64>) -> Self {
        value.map_or(Self::Empty, |value| Self::Measured { value, uncertainty })
    }
}

impl Column {
    fn new(name: &str, heading: &str, kind: ColumnKind) -> Self {
        Self { name: name.to_owned(), heading: heading.to_owned(), unit: None, kind }
    }

    fn text(name: &str) -> Self {
        Self::new(name, name, ColumnKind::Text)
    }

    /// Returns a column of yields.
    fn events(name: &str, heading: &str) -> Self {
        Self { unit: Some("events"), ..Self::new(name, heading, ColumnKind::Measured) }
    }
}

impl ColumnKind {
    /// Formats a number without an uncertainty.
    fn shown(self, number: f64) -> String {
        match self {
            Self::Fixed(decimals) => rounding::fixed(number, decimals),
            Self::Number(digits) => significant(number, digits),
            Self::Digits(digits) => rounding::with_digits(number, digits),
            Self::Text | Self::Measured | Self::Interval => significant(number, 6),
        }
    }
}

impl Row {
    fn new(cells: Vec<Cell>) -> Self {
        Self { cells, has_rule: false }
    }
}

/// Returns `text` with blanks instead of line breaks and other control characters, and without
/// characters that change the direction of others or cannot be seen.
fn on_one_line(text: &str) -> String {
    let is_invisible =
        |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    text.chars().filter(|c| !is_invisible(*c)).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
