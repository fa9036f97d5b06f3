//! Parsers for values of arguments, with messages for invalid ones.

use clap::builder::{OsStringValueParser, TypedValueParser};
use nextstat::Face;
use ns_core::interpolate::{HistoSysInterpolation, Interpolation, NormSysInterpolation};
use ns_inference::toys::{InvalidToyCount, number_of_toys};
use ns_translate::DocumentSource;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

/// `NAME=VALUE`
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) value: f64,
}

/// `NAME=LO:HI`
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Range {
    pub(crate) name: String,
    pub(crate) bounds: [f64; 2],
}

/// `NAME=START:STOP:POINTS`
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FixedValues {
    pub(crate) name: String,
    /// Values from the start to the stop, equally spaced.
    pub(crate) values: Vec<f64>,
}

/// `NAME=PATTERN,…`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupPatterns {
    pub(crate) name: String,
    pub(crate) patterns: Vec<String>,
}

/// `KIND=CODE`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InterpolationRule {
    NormSys(NormSysInterpolation),
    HistoSys(HistoSysInterpolation),
}

impl InterpolationRule {
    pub(crate) fn apply(self, interpolation: &mut Interpolation) {
        match self {
            Self::NormSys(rule) => interpolation.normsys = rule,
            Self::HistoSys(rule) => interpolation.histosys = rule,
        }
    }
}

/// Why the value of an option is not valid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum ValueError {
    #[error("expected `{form}`, such as `{example}`")]
    Form { form: &'static str, example: String },
    #[error("`{text}` is not a number")]
    NotANumber { text: String },
    #[error("`{text}` is not a finite number")]
    NotFinite { text: String },
    #[error("`{text}` is not a whole number of at least 0")]
    NotACount { text: String },
    #[error("`{text}` is not a number of threads: at least 1")]
    NotThreads { text: String },
    #[error("`{text}` is not a number of shards: 1 to {MOST_SHARDS}")]
    NotShards { text: String },
    #[error(transparent)]
    InvalidToyCount(#[from] InvalidToyCount),
    #[error("`{text}` is not between 0 and 1")]
    NotAFraction { text: String },
    #[error("the lower end {lower} is not below the upper end {upper}")]
    EmptyRange { lower: f64, upper: f64 },
    #[error("`{text}` is not a number of points: 2 to {MOST_POINTS}")]
    NotPoints { text: String },
    #[error("there is no shard {index} of {of}: K is 1 to {of}")]
    NoSuchShard { index: u64, of: u64 },
    #[error("`{kind}` has no interpolation rules; `normsys` and `histosys` have")]
    UnknownKind { kind: String },
    #[error("unknown interpolation `{code}` of `{kind}`; choose one of {known}")]
    UnknownCode { kind: &'static str, code: String, known: &'static str },
}

/// Parses a path, or `-`.
pub(crate) fn source() -> impl TypedValueParser<Value = DocumentSource> {
    OsStringValueParser::new()
        .map(|path| if path == "-" { DocumentSource::Stdin } else { DocumentSource::Path(PathBuf::from(path)) })
}

/// A document, perhaps with a label.
#[derive(Debug, Clone)]
pub(crate) struct LabelledSource {
    pub(crate) label: Option<String>,
    pub(crate) source: DocumentSource,
}

impl From<DocumentSource> for LabelledSource {
    fn from(source: DocumentSource) -> Self {
        Self { label: None, source }
    }
}

/// Parses `FILE`, `LABEL=FILE`, or `-`; a file whose name has an equals sign is one.
pub(crate) fn labelled_source() -> impl TypedValueParser<Value = LabelledSource> {
    source().map(|source| {
        let DocumentSource::Path(path) = &source else { return source.into() };
        match path.to_str().and_then(|text| text.split_once('=')) {
            Some((label, file)) if !path.exists() => {
                LabelledSource { label: Some(label.to_owned()), source: DocumentSource::Path(file.into()) }
            }
            _ => source.into(),
        }
    })
}

/// Parses a number, of which the library says whether it is valid: NaN and infinity too.
pub(crate) fn number(text: &str) -> Result<f64, ValueError> {
    text.trim().parse().map_err(|_| ValueError::NotANumber { text: text.to_owned() })
}

/// Parses a finite number.
pub(crate) fn finite(text: &str) -> Result<f64, ValueError> {
    let number = number(text)?;
    if number.is_finite() { Ok(number) } else { Err(ValueError::NotFinite { text: text.to_owned() }) }
}

/// Parses a seed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    nextstat::settings::seed(text).map_err(|error| error.message(Face::Command))
}

/// Parses a number of threads.
pub(crate) fn threads(text: &str) -> Result<NonZeroUsize, ValueError> {
    let number = text.trim().parse().ok().and_then(NonZeroUsize::new);
    number.ok_or_else(|| ValueError::NotThreads { text: text.to_owned() })
}

/// The largest number of shards of a job: their names are the arguments of one command.
const MOST_SHARDS: u32 = 10_000;

/// Parses the number of shards of a job.
pub(crate) fn n_shards(text: &str) -> Result<NonZeroU32, ValueError> {
    let number = text.trim().parse().ok().and_then(NonZeroU32::new).filter(|n| n.get() <= MOST_SHARDS);
    number.ok_or_else(|| ValueError::NotShards { text: text.to_owned() })
}

/// Parses a whole number of at least 0.
pub(crate) fn count(text: &str) -> Result<usize, ValueError> {
    text.trim().parse().map_err(|_| ValueError::NotACount { text: text.to_owned() })
}

/// Parses a number of toys: a whole number, also written as `1e6`.
pub(crate) fn n_toys(text: &str) -> Result<u64, ValueError> {
    let plain = text.trim().parse::<u64>().ok();
    let number = plain.or_else(|| finite(text).ok().filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64));
    Ok(number_of_toys(number, text)?)
}

/// Parses a number from 0 to 1, both included.
pub(crate) fn threshold(text: &str) -> Result<f64, ValueError> {
    let number = finite(text)?;
    if (0.0..=1.0).contains(&number) { Ok(number) } else { Err(ValueError::NotAFraction { text: text.to_owned() }) }
}

/// Parses `NAME=PATTERN,…`. The first equals sign separates, because patterns may contain one.
pub(crate) fn group(text: &str) -> Result<GroupPatterns, ValueError> {
    let form = || ValueError::Form {
        form: "NAME=PATTERN,PATTERN",
        example: format!("group={}", text.trim_matches(['=', ',']).split('=').next_back().unwrap_or("JES_*")),
    };
    let (name, patterns) = text.split_once('=').ok_or_else(form)?;
    let patterns: Vec<String> = patterns.split(',').map(str::to_owned).collect();
    if name.is_empty() || patterns.iter().any(String::is_empty) {
        return Err(form());
    }
    Ok(GroupPatterns { name: name.to_owned(), patterns })
}

/// Parses `NAME=PATTERN,…`, or a name for no patterns.
pub(crate) fn group_or_name(text: &str) -> Result<GroupPatterns, ValueError> {
    if text.is_empty() || text.contains(['=', '*', '?', ',']) {
        group(text)
    } else {
        Ok(GroupPatterns { name: text.to_owned(), patterns: Vec::new() })
    }
}

/// Splits at the last equals sign, because names may contain one and numbers do not.
fn split(text: &str) -> Option<(&str, &str)> {
    text.rsplit_once('=').filter(|(name, _)| !name.is_empty())
}

pub(crate) fn assignment(text: &str) -> Result<Assignment, ValueError> {
    let name = if text.is_empty() || text.starts_with('=') { "mu" } else { text };
    let form = || ValueError::Form { form: "NAME=VALUE", example: format!("{name}=1") };
    let (name, value) = split(text).ok_or_else(form)?;
    Ok(Assignment { name: name.to_owned(), value: number(value)? })
}

/// Parses `LABEL=VALUE`, whose value may be a word.
pub(crate) fn choice(text: &str) -> Result<(String, String), ValueError> {
    let form = || ValueError::Form { form: "LABEL=VALUE", example: format!("{}=60", text.trim_matches('=')) };
    let (label, value) = split(text).filter(|(_, value)| !value.is_empty()).ok_or_else(form)?;
    Ok((label.to_owned(), value.to_owned()))
}

pub(crate) fn range(text: &str) -> Result<Range, ValueError> {
    let form = |example| ValueError::Form { form: "NAME=LO:HI", example };
    let (name, ends) = split(text).ok_or_else(|| form("mu=0:10".to_owned()))?;
    // What other programs separate ends by.
    let example = || format!("{name}={}", ends.replace("..", ":").replace([',', ';'], ":"));
    let (lower, upper) = ends.split_once(':').ok_or_else(|| {
        let example = example();
        form(if example.contains(':') { example } else { format!("{name}=0:10") })
    })?;
    Ok(Range { name: name.to_owned(), bounds: [number(lower)?, number(upper)?] })
}

/// Parses `NAME=LO:HI`, the factors of a normsys at -1 and +1 standard deviation.
pub(crate) fn normsys(text: &str) -> Result<Range, ValueError> {
    let form = || ValueError::Form { form: "NAME=LO:HI", example: "theory=0.9:1.1".to_owned() };
    let (name, factors) = split(text).ok_or_else(form)?;
    let (lo, hi) = factors.split_once(':').ok_or_else(form)?;
    Ok(Range { name: name.to_owned(), bounds: [finite(lo)?, finite(hi)?] })
}

/// Parses `NAME=LO,HI`, as Combine writes a range.
pub(crate) fn combine_range(text: &str) -> Result<Range, ValueError> {
    let form = |name| ValueError::Form { form: "NAME=LO,HI", example: format!("{name}=0,10") };
    let (name, ends) = split(text).ok_or_else(|| form("r"))?;
    let (lower, upper) = ends.split_once(',').ok_or_else(|| form(name))?;
    Ok(Range { name: name.to_owned(), bounds: [number(lower)?, number(upper)?] })
}

/// The largest number of values that a parameter is fixed at.
const MOST_POINTS: u32 = 100_000;

/// Parses `NAME=START:STOP:POINTS`.
pub(crate) fn fixed_values(text: &str) -> Result<FixedValues, ValueError> {
    let form = |name| ValueError::Form { form: "NAME=START:STOP:POINTS", example: format!("{name}=0:5:11") };
    let (name, values) = split(text).ok_or_else(|| form("mu"))?;
    let [start, stop, points] = values.split(':').collect::<Vec<_>>()[..] else { return Err(form(name)) };
    let (lower, upper) = (finite(start)?, finite(stop)?);
    let not_points = || ValueError::NotPoints { text: points.to_owned() };
    let points: u32 = points.trim().parse().map_err(|_| not_points())?;
    if !(2..=MOST_POINTS).contains(&points) {
        return Err(not_points());
    }
    if lower >= upper {
        return Err(ValueError::EmptyRange { lower, upper });
    }
    let last = points - 1;
    let value = |i| if i == last { upper } else { lower + (upper - lower) * f64::from(i) / f64::from(last) };
    Ok(FixedValues { name: name.to_owned(), values: (0..=last).map(value).collect() })
}

pub(crate) fn interpolation_rule(text: &str) -> Result<InterpolationRule, ValueError> {
    let form = || ValueError::Form { form: "KIND=CODE", example: "normsys=code1".to_owned() };
    let (kind, code) = split(text).ok_or_else(form)?;
    let unknown = |kind, known| ValueError::UnknownCode { kind, code: code.to_owned(), known };
    match kind {
        "normsys" => NormSysInterpolation::from_code(code)
            .map(InterpolationRule::NormSys)
            .ok_or_else(|| unknown("normsys", "`code1` and `code4`")),
        "histosys" => HistoSysInterpolation::from_code(code)
            .map(InterpolationRule::HistoSys)
            .ok_or_else(|| unknown("histosys", "`code0`, `code2` and `code4p`")),
        other => Err(ValueError::UnknownKind { kind: other.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_and_ranges_are_read_from_the_last_equals_sign() {
        let expected = Assignment { name: "a=b[0]".to_owned(), value: -1.5 };
        assert_eq!(assignment("a=b[0]=-1.5"), Ok(expected));
        assert_eq!(fixed_values("b=0:1:3").map(|at| at.values), Ok(vec![0.0, 0.5, 1.0]));
        assert_eq!(range("mu=-1:2e1").map(|r| r.bounds), Ok([-1.0, 20.0]));
    }

    #[test]
    fn invalid_values_are_explained() {
        let messages = ["mu", "=1", "mu=", "mu=one"]
            .map(|text| assignment(text).map_or_else(|error| error.to_string(), |ok| format!("{ok:?}")));
        assert_eq!(
            messages,
            [
                "expected `NAME=VALUE`, such as `mu=1`",
                "expected `NAME=VALUE`, such as `mu=1`",
                "`` is not a number",
                "`one` is not a number",
            ]
        );
        let message = |text| range(text).expect_err("not a range").to_string();
        assert_eq!(message("mu=-5,5"), "expected `NAME=LO:HI`, such as `mu=-5:5`");
        assert_eq!(message("mu=5"), "expected `NAME=LO:HI`, such as `mu=0:10`");
        let message = group("JES_*").expect_err("no name").to_string();
        assert_eq!(message, "expected `NAME=PATTERN,PATTERN`, such as `group=JES_*`");
        assert_eq!(fixed_values("mu=2:1:3"), Err(ValueError::EmptyRange { lower: 2.0, upper: 1.0 }));
        assert!(interpolation_rule("shapesys=code1").is_err());
        assert!(interpolation_rule("normsys=code0").is_err());
    }
}
