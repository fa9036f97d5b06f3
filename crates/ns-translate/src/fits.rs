//! Reads the documents of fits: best-fit values, uncertainties and their covariance, as written.

use crate::json::{self, JsonCursor, JsonError, JsonObject};
use crate::place::DocumentPlace;

/// The document of a fit. P is the number of parameters.
///
/// Its lists have P entries and its matrices P × P; what the numbers are is not checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FitDocument {
    /// The JSON pointer of the fit: empty, or `/fit` in the document of a report.
    pub pointer: String,
    /// Whether the fit converged. If not, nothing else is read.
    pub converged: bool,
    /// Parameter names (P).
    pub par_names: Vec<String>,
    /// Best-fit values (P).
    pub bestfit: Vec<f64>,
    /// Standard deviations (P); `None` for `null`.
    pub uncertainties: Vec<Option<f64>>,
    /// The covariance (P × P, by rows), if the document has one.
    pub covariance: Option<Vec<f64>>,
    /// The correlations (P × P, by rows), if the document has them.
    pub correlation: Option<Vec<f64>>,
    /// The checksums of all these by their names, as [`fit_checksums`] has them, if the document
    /// has any.
    pub checksums: Vec<(String, String)>,
    /// What the fit was made of, if the document has its provenance.
    pub origin: Option<FitOrigin>,
}

/// Returns the checksums of a fit in documents, by what they are of: `parameters` (the names,
/// values and uncertainties) and each matrix that is there.
///
/// They are CRC-32 as eight hexadecimal digits. Numbers that are not finite are all alike, and so
/// are the two zeros.
///
/// ```
/// use ns_translate::{FitDocument, fit_checksums};
/// let fit = FitDocument { par_names: vec!["mu".to_owned()], bestfit: vec![1.25], ..FitDocument::default() };
/// let other = FitDocument { bestfit: vec![1.26], ..fit.clone() };
/// assert_eq!(fit_checksums(&fit)[0].0, "parameters");
/// assert_ne!(fit_checksums(&fit), fit_checksums(&other));
/// ```
#[must_use]
pub fn fit_checksums(fit: &FitDocument) -> Vec<(&'static str, String)> {
    let mut parameters = Checksum::default();
    fit.par_names.iter().for_each(|name| parameters.add_text(name));
    parameters.add_numbers(fit.bestfit.iter().copied());
    parameters.add_numbers(fit.uncertainties.iter().map(|width| width.unwrap_or(f64::NAN)));
    let of_matrix = |(name, matrix): (&'static str, &Option<Vec<f64>>)| {
        let mut checksum = Checksum::default();
        checksum.add_numbers(matrix.as_ref()?.iter().copied());
        Some((name, checksum.digits()))
    };
    let matrices = [("covariance", &fit.covariance), ("correlation", &fit.correlation)];
    std::iter::once(("parameters", parameters.digits())).chain(matrices.into_iter().filter_map(of_matrix)).collect()
}

/// A CRC-32 of texts and numbers.
#[derive(Default)]
struct Checksum(crc32fast::Hasher);

impl Checksum {
    fn add_text(&mut self, text: &str) {
        self.0.update(&(text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
    }

    fn add_numbers(&mut self, numbers: impl Iterator<Item = f64>) {
        let same = |number: f64| if number.is_finite() { number + 0.0 } else { f64::NAN };
        let bytes: Vec<u8> = numbers.flat_map(|number| same(number).to_bits().to_le_bytes()).collect();
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(&bytes);
    }

    fn digits(self) -> String {
        format!("{:08x}", self.0.finalize())
    }
}

/// What a fit was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FitOrigin {
    /// SHA-256 digest of the workspace.
    pub workspace_sha256: String,
    /// Whether the data were the observed ones.
    pub is_observed: bool,
    /// The parameters that the settings fixed.
    pub fixed: Vec<String>,
    /// The bins that were not fitted, by channel; `None` for all bins of the channel.
    pub masked: Vec<(String, Option<Vec<usize>>)>,
}

impl FitDocument {
    /// Returns the place of the value at the pointer `below`, which is relative to the fit.
    #[must_use]
    pub fn place(&self, below: &str) -> DocumentPlace {
        DocumentPlace { pointer: format!("{}{below}", self.pointer), position: None }
    }
}

/// Reads the document of a fit, or that of a report, which has a fit in it.
///
/// # Errors
/// A document that is not JSON or has no such lists, with the place.
///
/// ```
/// let error = ns_translate::read_fit(br#"{"par_names": ["mu"], "bestfit": [null]}"#).unwrap_err();
/// assert_eq!(error.to_string(), "expected a number, found `null` at `/bestfit/0` (line 1, column 35)");
/// ```
pub fn read_fit(bytes: &[u8]) -> Result<FitDocument, JsonError> {
    let text = json::decode(bytes)?;
    let root = json::parse(text)?;
    let top = JsonCursor::top(text, &root);
    let document = top.open_object()?;
    let origin = document.get("provenance").and_then(|provenance| read_origin(&provenance).ok());
    let inner = document.get("fit").filter(|fit| fit.open_object().is_ok());
    let fit = match &inner {
        None => FitDocument { origin, ..read_fields(&document)? },
        Some(fit) => FitDocument { pointer: "/fit".to_owned(), origin, ..read_fields(&fit.open_object()?)? },
    };
    Ok(fit)
}

fn read_fields(fit: &JsonObject<'_>) -> Result<FitDocument, JsonError> {
    let converged = fit.get("converged").map_or(Ok(true), |converged| converged.boolean())?;
    if !converged {
        return Ok(FitDocument::default());
    }
    let par_names: Vec<String> =
        fit.need("par_names")?.list()?.map(|name| name.text().map(str::to_owned)).collect::<Result<_, _>>()?;
    let n = par_names.len();
    let optional = |number: JsonCursor<'_>| if number.is_null() { Ok(None) } else { number.number().map(Some) };
    let matrix = |key| fit.get(key).filter(|matrix| !matrix.is_null()).map(|matrix| square(&matrix, n)).transpose();
    Ok(FitDocument {
        converged,
        bestfit: entries(&fit.need("bestfit")?, n, |number| number.number())?,
        uncertainties: entries(&fit.need("uncertainties")?, n, optional)?,
        covariance: matrix("covariance")?,
        correlation: matrix("correlation")?,
        checksums: fit.get("checksums").map_or(Ok(Vec::new()), |checksums| read_checksums(&checksums))?,
        par_names,
        ..FitDocument::default()
    })
}

/// Reads texts by their names.
fn read_checksums(checksums: &JsonCursor<'_>) -> Result<Vec<(String, String)>, JsonError> {
    checksums.members()?.map(|(member, value)| Ok((member.key.to_string(), value.text()?.to_owned()))).collect()
}

/// Reads a list of `n` entries.
fn entries<T>(
    list: &JsonCursor<'_>,
    n: usize,
    read: impl Fn(JsonCursor<'_>) -> Result<T, JsonError>,
) -> Result<Vec<T>, JsonError> {
    let found: Vec<T> = list.list()?.map(read).collect::<Result<_, _>>()?;
    if found.len() != n {
        return Err(JsonError::WrongLength { expected: n, found: found.len(), place: list.place() });
    }
    Ok(found)
}

/// Reads a list of `n` lists of `n` numbers, and joins them.
fn square(matrix: &JsonCursor<'_>, n: usize) -> Result<Vec<f64>, JsonError> {
    Ok(entries(matrix, n, |row| entries(&row, n, |number| number.number()))?.concat())
}

/// Reads the provenance of a fit.
fn read_origin(provenance: &JsonCursor<'_>) -> Result<FitOrigin, JsonError> {
    let provenance = provenance.open_object()?;
    let digest = provenance.need("workspace")?.open_object()?.need("digest")?.text()?.to_owned();
    let is_observed = provenance.need("data")?.open_object()?.need("source")?.text()? == "observed";
    let settings = provenance.get("settings");
    let settings = settings.as_ref().map(JsonCursor::open_object).transpose()?;
    let fixed = settings.as_ref().and_then(|settings| settings.get("fixed"));
    let fixed = fixed.as_ref().map_or(Ok(Vec::new()), |fixed| -> Result<Vec<_>, JsonError> {
        Ok(fixed.members()?.map(|(member, _)| member.key.to_string()).collect())
    })?;
    let masked = settings.and_then(|settings| settings.get("masked"));
    let masked = masked.as_ref().map_or(Ok(Vec::new()), |masked| -> Result<Vec<_>, JsonError> {
        masked.members()?.map(|(member, bins)| Ok((member.key.to_string(), read_bins(&bins)?))).collect()
    })?;
    Ok(FitOrigin { workspace_sha256: digest, is_observed, fixed, masked })
}

/// Reads the bins of a channel: `all`, or a list of numbers.
fn read_bins(bins: &JsonCursor<'_>) -> Result<Option<Vec<usize>>, JsonError> {
    if bins.text().is_ok_and(|text| text == "all") {
        return Ok(None);
    }
    bins.list()?.map(|bin| bin.number().map(|bin| bin as usize)).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::read_fit;

    fn message(text: &str) -> String {
        read_fit(text.as_bytes()).expect_err("no fit").to_string()
    }

    #[test]
    fn shapes_that_do_not_fit_have_their_place() {
        assert_eq!(message("[1]"), "expected an object, found a list of 1 at line 1, column 1");
        assert_eq!(message("{}"), "missing key `par_names` in the object at line 1, column 1");
        let fit = |rest: &str| format!(r#"{{"fit": {{"par_names": ["a", "b"], "bestfit": [1, 2], {rest}}}}}"#);
        for (rest, said) in [
            (r#""uncertainties": [1]"#, "expected 2 entries, found 1 at `/fit/uncertainties`"),
            (r#""uncertainties": [1, "x"]"#, "expected a number, found the string `x` at `/fit/uncertainties/1`"),
            (r#""uncertainties": [1, NaN]"#, "`NaN` is not a JSON number, at `/fit/uncertainties/1`"),
            (
                r#""uncertainties": [1, 1], "covariance": [[1, 0], [0]]"#,
                "expected 2 entries, found 1 at `/fit/covariance/1`",
            ),
            (
                r#""uncertainties": [1, 1], "correlation": [[1, null], [0, 1]]"#,
                "expected a number, found `null` at `/fit/correlation/0/1`",
            ),
        ] {
            let found = message(&fit(rest));
            assert!(found.starts_with(said), "{found}");
        }
    }

    #[test]
    fn provenance_says_which_bins_were_fitted() {
        let text = r#"{"par_names": [], "bestfit": [], "uncertainties": [], "provenance": {
            "workspace": {"digest": "abc"}, "data": {"source": "observed"},
            "settings": {"fixed": {"mu": 0}, "masked": {"SR": "all", "VR": [1, 2]}}}}"#;
        let origin = read_fit(text.as_bytes()).expect("a fit").origin.expect("a provenance");
        assert_eq!(origin.workspace_sha256, "abc");
        assert!(origin.is_observed);
        assert_eq!(origin.fixed, ["mu"]);
        assert_eq!(origin.masked, [("SR".to_owned(), None), ("VR".to_owned(), Some(vec![1, 2]))]);
    }
}
