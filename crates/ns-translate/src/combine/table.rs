//! Templates in a CSV file: rows with a bin's content and its squared uncertainty.
//!
//! The last two columns are `sum_w` and `sum_ww`; the others name a template and the bin, such as
//! `channel,process,systematic,bin`. A template is named by what its rows begin with, joined by
//! colons; where that names fewer than three columns, `nominal` follows.

use std::collections::HashMap;

const WANTED: &str = "a table with named columns, the last two of which are `sum_w` and `sum_ww`";

/// Contents and squared uncertainties.
type Rows = (Vec<f64>, Vec<f64>);

/// The templates of one file.
pub(super) struct TemplateTable {
    /// By the values of all columns but the bin and the last two.
    templates: HashMap<String, Rows>,
}

impl TemplateTable {
    /// Reads a table, or returns what it should be.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(bytes).map_err(|_| WANTED)?;
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let header: Vec<&str> = lines.next().ok_or(WANTED)?.split(',').map(str::trim).collect();
        if header.len() < 4 || header[header.len() - 2..] != ["sum_w", "sum_ww"] {
            return Err(WANTED);
        }
        let mut templates: HashMap<String, Rows> = HashMap::new();
        for line in lines {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            if cells.len() != header.len() {
                return Err("a table whose rows have as many cells as its header");
            }
            let (labels, numbers) = cells.split_at(cells.len() - 2);
            let number = |text: &str| text.parse::<f64>().map_err(|_| "a table with numbers in its last two columns");
            let (content, square) = (number(numbers[0])?, number(numbers[1])?);
            let template = templates.entry(labels[..labels.len() - 1].join(":")).or_default();
            template.0.push(content);
            template.1.push(square);
        }
        Ok(Self { templates })
    }

    /// Returns the contents and uncertainties of a template.
    pub(super) fn template(&self, name: &str) -> Option<Rows> {
        let name = name.split(',').next().unwrap_or(name);
        let nominal = format!("{name}:nominal");
        let key = if name.split(':').count() < 3 { nominal.as_str() } else { name };
        let (contents, squares) = self.templates.get(key)?;
        Some((contents.clone(), squares.iter().map(|square| square.sqrt()).collect()))
    }

    /// Returns the names of all templates.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.templates.keys().cloned().collect();
        names.sort_unstable();
        names
    }
}
