//! A histogram with one axis, and how its bytes are laid out.
//!
//! `TH1D` and its relatives have a base `TH1` and an array of contents. `TH1` begins with the same
//! members in versions 3 to 8 (ROOT 3.00 to 6.40): name, cells, three axes, statistics, contours
//! and sums of squared weights. What follows is skipped by the lengths that the file has, except
//! for the buffer of entries.

use crate::cursor::{Cursor, OutOfBytes};
use crate::error::{RootFileError, RootWriteError};

/// Versions of `TH1` whose first members are those that are read here.
const HISTOGRAM_VERSIONS: std::ops::RangeInclusive<u16> = 3..=8;

/// Versions of `TAxis` whose first members are those that are read here.
const AXIS_VERSIONS: std::ops::RangeInclusive<u16> = 6..=10;

/// The most bins of a histogram that is written: with its sums of squared weights and its edges it
/// stays within [`crate::OBJECT_LIMIT`].
const BIN_LIMIT: usize = 10_000_000;

/// A histogram with one axis.
///
/// Cells are counted as in ROOT: cell 0 is the underflow, the last one is the overflow, and the
/// bins are between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// The name.
    pub name: String,
    /// The title.
    pub title: String,
    /// Contents of the cells: underflow, bins, overflow.
    contents: Vec<f64>,
    /// Sums of squared weights of the cells; `None` where the histogram has none.
    squared_weights: Option<Vec<f64>>,
    /// Edges of the bins, from the lowest to the highest; one more than there are bins.
    edges: Vec<f64>,
}

impl Histogram {
    /// Returns a histogram with these contents of its bins (B), edges (B + 1) and sums of squared
    /// weights (B), and nothing below and above.
    ///
    /// # Errors
    ///
    /// Lengths that differ, no bins, too many of them, and edges that do not increase.
    pub fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        edges: Vec<f64>,
        values: &[f64],
        squared_weights: Option<&[f64]>,
    ) -> Result<Self, RootWriteError> {
        let name = name.into();
        let n_bins = values.len();
        if n_bins > BIN_LIMIT {
            return Err(RootWriteError::TooManyBins { name, n_bins, limit: BIN_LIMIT });
        }
        let has_lengths =
            n_bins > 0 && edges.len() == n_bins + 1 && squared_weights.is_none_or(|squares| squares.len() == n_bins);
        if !has_lengths {
            return Err(RootWriteError::Bins { name });
        }
        if !edges.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(RootWriteError::Edges { name });
        }
        let cells = |numbers: &[f64]| [&[0.0], numbers, &[0.0]].concat();
        let (contents, squared_weights) = (cells(values), squared_weights.map(cells));
        Ok(Self { name, title: title.into(), contents, squared_weights, edges })
    }

    /// Returns the contents of all cells (B + 2).
    pub(crate) fn cells(&self) -> &[f64] {
        &self.contents
    }

    /// Returns the sums of squared weights of all cells (B + 2), if there are any.
    pub(crate) fn squared_weights(&self) -> Option<&[f64]> {
        self.squared_weights.as_deref()
    }

    /// Returns the lowest and the highest edge.
    pub(crate) fn range(&self) -> (f64, f64) {
        (self.edges[0], self.edges[self.n_bins()])
    }

    /// Returns whether the edges are those that a reader computes from the lowest, the highest and
    /// the number of bins.
    pub(crate) fn is_equidistant(&self) -> bool {
        let (low, high) = self.range();
        equidistant_edges(self.n_bins(), low, high).eq(self.edges.iter().copied())
    }

    /// Returns the number of bins, without underflow and overflow.
    #[must_use]
    pub fn n_bins(&self) -> usize {
        self.contents.len() - 2
    }

    /// Returns the contents of the bins (B).
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.contents[1..=self.n_bins()]
    }

    /// Returns the uncertainties of the bins (B): the root of the sum of squared weights, and of
    /// the absolute content where there are no such sums, as `TH1::GetBinError` does.
    #[must_use]
    pub fn errors(&self) -> Vec<f64> {
        let squares = self.squared_weights.as_ref().unwrap_or(&self.contents);
        let of_cell = |square: &f64| if self.squared_weights.is_some() { square.sqrt() } else { square.abs().sqrt() };
        squares[1..=self.n_bins()].iter().map(of_cell).collect()
    }

    /// Returns whether the histogram has sums of squared weights.
    #[must_use]
    pub fn has_squared_weights(&self) -> bool {
        self.squared_weights.is_some()
    }

    /// Returns the content below the lowest edge.
    #[must_use]
    pub fn underflow(&self) -> f64 {
        self.contents[0]
    }

    /// Returns the content above the highest edge.
    #[must_use]
    pub fn overflow(&self) -> f64 {
        self.contents[self.contents.len() - 1]
    }

    /// Returns the edges of the bins (B + 1).
    #[must_use]
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }
}

/// Returns how a class stores the contents of its cells; `None` for classes that are not read.
fn storage(class: &str) -> Option<Storage> {
    let storage = match class {
        "TH1C" => Storage { width: 1, number: |bytes| f64::from(i8::from_be_bytes(fixed(bytes))) },
        "TH1S" => Storage { width: 2, number: |bytes| f64::from(i16::from_be_bytes(fixed(bytes))) },
        "TH1I" => Storage { width: 4, number: |bytes| f64::from(i32::from_be_bytes(fixed(bytes))) },
        // Contents above 2^53 are rounded, as `GetBinContent` rounds them.
        "TH1L" => Storage { width: 8, number: |bytes| i64::from_be_bytes(fixed(bytes)) as f64 },
        "TH1F" => Storage { width: 4, number: |bytes| f64::from(f32::from_be_bytes(fixed(bytes))) },
        "TH1D" => Storage { width: 8, number: |bytes| f64::from_be_bytes(fixed(bytes)) },
        _ => return None,
    };
    Some(storage)
}

/// The numbers of an array.
struct Storage {
    /// Bytes of a number.
    width: usize,
    /// Returns the number of its bytes.
    number: fn(&[u8]) -> f64,
}

/// Returns bytes whose number was checked.
fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap_or([0; N])
}

/// Returns whether objects of the class `class` are read.
pub(crate) fn is_histogram(class: &str) -> bool {
    storage(class).is_some()
}

/// Why the bytes of an object are not a histogram.
enum Problem {
    OutOfBytes,
    Damaged(&'static str),
    Version { class: &'static str, version: u16 },
    Buffered(u64),
}

impl From<OutOfBytes> for Problem {
    fn from(OutOfBytes: OutOfBytes) -> Self {
        Self::OutOfBytes
    }
}

/// Reads the object of the class `class` whose record is at `offset`.
pub(crate) fn read_histogram(class: &str, bytes: &[u8], offset: u64, path: &str) -> Result<Histogram, RootFileError> {
    const WHAT: &str = "a histogram";
    histogram(class, bytes).map_err(|problem| match problem {
        Problem::OutOfBytes => RootFileError::Truncated { what: WHAT, offset },
        Problem::Damaged(problem) => RootFileError::Damaged { what: WHAT, offset, problem },
        Problem::Version { class, version } => RootFileError::Version { path: path.to_owned(), class, version },
        Problem::Buffered(entries) => RootFileError::Buffered { path: path.to_owned(), entries },
    })
}

fn histogram(class: &str, bytes: &[u8]) -> Result<Histogram, Problem> {
    let Some(storage) = storage(class) else { return Err(Problem::Damaged("its class is not read")) };
    let mut cursor = Cursor::new(bytes);
    cursor.header()?;
    let base = base(&mut cursor)?;
    let contents: Vec<f64> =
        cursor.array_bytes(storage.width)?.chunks_exact(storage.width).map(storage.number).collect();
    if contents.len() < 3 || contents.len() != base.n_cells || contents.len() != base.edges.len() + 1 {
        return Err(Problem::Damaged("the numbers of its cells and bins differ"));
    }
    let squared_weights = (!base.squared_weights.is_empty()).then_some(base.squared_weights);
    if squared_weights.as_ref().is_some_and(|squares| squares.len() != contents.len()) {
        return Err(Problem::Damaged("it does not have one sum of squared weights for each cell"));
    }
    Ok(Histogram { name: base.name, title: base.title, contents, squared_weights, edges: base.edges })
}

/// What is read of `TH1`.
struct Base {
    name: String,
    title: String,
    n_cells: usize,
    edges: Vec<f64>,
    squared_weights: Vec<f64>,
}

fn base(cursor: &mut Cursor<'_>) -> Result<Base, Problem> {
    let header = cursor.header()?;
    if !HISTOGRAM_VERSIONS.contains(&header.version) {
        return Err(Problem::Version { class: "TH1", version: header.version });
    }
    let end = header.end.ok_or(OutOfBytes)?;
    let [name, title] = cursor.named()?;
    // Lines, areas and markers.
    for _ in 0..3 {
        cursor.skip_base()?;
    }
    let n_cells = usize::try_from(cursor.count()?).map_err(|_| OutOfBytes)?;
    let edges = axis(cursor, n_cells)?;
    // The axes y and z.
    cursor.skip_base()?;
    cursor.skip_base()?;
    let _bar_offset_and_width = [cursor.i16()?, cursor.i16()?];
    // Entries, four sums, maximum, minimum, and a norm that only drawing uses.
    cursor.take(8 * 8)?;
    let _contours = cursor.doubles()?;
    let squared_weights = cursor.doubles()?;
    buffer(cursor, end)?;
    cursor.skip_to(end)?;
    Ok(Base { name, title, n_cells, edges, squared_weights })
}

/// Reads the axis of a histogram of `n_cells` contents and returns the edges of its bins.
fn axis(cursor: &mut Cursor<'_>, n_cells: usize) -> Result<Vec<f64>, Problem> {
    let header = cursor.header()?;
    if !AXIS_VERSIONS.contains(&header.version) {
        return Err(Problem::Version { class: "TAxis", version: header.version });
    }
    cursor.named()?;
    cursor.skip_base()?;
    let n_bins = cursor.count()?;
    // Underflow and overflow have contents, too. Here, before there is memory for edges.
    if n_bins.checked_add(2) != u64::try_from(n_cells).ok() {
        return Err(Problem::Damaged("the numbers of its cells and bins differ"));
    }
    let (low, high) = (cursor.f64()?, cursor.f64()?);
    let edges = cursor.doubles()?;
    cursor.skip_to(header.end.ok_or(OutOfBytes)?)?;
    match edges.len() as u64 {
        0 => equidistant(n_bins, low, high),
        n_edges if n_edges == n_bins + 1 => Ok(edges),
        _ => Err(Problem::Damaged("the numbers of its bins and edges differ")),
    }
}

fn equidistant(n_bins: u64, low: f64, high: f64) -> Result<Vec<f64>, Problem> {
    // As many bins as an object within the limit can have.
    if n_bins == 0 || n_bins > crate::limits::OBJECT_LIMIT {
        return Err(Problem::Damaged("its number of bins is impossible"));
    }
    let n_bins = usize::try_from(n_bins).map_err(|_| OutOfBytes)?;
    Ok(equidistant_edges(n_bins, low, high).collect())
}

/// Returns the edges of `n_bins` bins of the same width.
fn equidistant_edges(n_bins: usize, low: f64, high: f64) -> impl Iterator<Item = f64> {
    let width = (high - low) / n_bins as f64;
    (0..=n_bins).map(move |bin| if bin == n_bins { high } else { low + bin as f64 * width })
}

/// Refuses a histogram whose buffer has entries, which are in no bin.
fn buffer(cursor: &mut Cursor<'_>, end: usize) -> Result<(), Problem> {
    cursor.string()?;
    cursor.skip_pointer()?;
    // Early versions end here.
    if cursor.position() >= end {
        return Ok(());
    }
    let size = cursor.count()?;
    let is_there = cursor.i8()? != 0;
    if !is_there || size == 0 {
        return Ok(());
    }
    // The first number counts the entries; a negative one says that they have been sorted in.
    let entries = cursor.f64()?;
    if entries > 0.0 { Err(Problem::Buffered(entries as u64)) } else { Ok(()) }
}
