//! Errors, with the file and the field that they are about.

mod gradients;
mod histograms;
mod inputs;

use std::io;
use std::path::PathBuf;

pub use gradients::GradientProblem;
pub use histograms::HistogramProblem;
pub use inputs::InputProblem;

use crate::config::KvShape;
use crate::preference::BackendPreference;

/// Why a model cannot be opened or computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that cannot be read.
    #[error("cannot read `{}`", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file that breaks its format.
    #[error("in `{}`: {field}: {problem}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Which part of it: a key, a tensor, a header field.
        field: String,
        /// What is wrong with it.
        problem: Problem,
    },
    /// More memory than there is, noticed before anything was loaded.
    #[error(
        "the model needs about {needed} bytes of memory ({weights} for weights, {cache} for keys and values), and {available} are available"
    )]
    Memory {
        /// In all.
        needed: u64,
        /// Weights, as they are stored.
        weights: u64,
        /// Keys and values of the whole context that was asked for.
        cache: u64,
        /// The limit.
        available: u64,
    },
    /// A token that the model does not know.
    #[error("token {position} is {id}, and the vocabulary has {vocabulary} (ids 0 to {})", .vocabulary.saturating_sub(1))]
    TokenOutOfRange {
        /// Its place in the sequence.
        position: usize,
        /// The id.
        id: u64,
        /// How many the model knows.
        vocabulary: usize,
    },
    /// One of several sequences cannot be computed.
    #[error("sequence {index}: {source}")]
    InSequence {
        /// The index of the sequence, counted from 0.
        index: usize,
        /// The error of that part.
        source: Box<Error>,
    },
    /// Nothing to compute.
    #[error("there are no tokens")]
    NoTokens,
    /// More tokens than the context holds.
    #[error("{asked} tokens do not fit into a context of {limit}")]
    ContextOverflow {
        /// How many there would be.
        asked: usize,
        /// How many there may be.
        limit: usize,
    },
    /// Arguments of a kernel that do not fit together.
    #[error("{kernel}: `{argument}` has {length} numbers, and {expected} are needed")]
    Shape {
        /// The kernel.
        kernel: &'static str,
        /// Its argument.
        argument: &'static str,
        /// What it has.
        length: usize,
        /// What it should have.
        expected: usize,
    },
    /// Empty rows, with which nothing can be computed.
    #[error("{kernel}: the rows of `{argument}` are empty")]
    Empty {
        /// The kernel.
        kernel: &'static str,
        /// Its argument.
        argument: &'static str,
    },
    /// Heads that cannot share keys and values.
    #[error(
        "{kernel}: {n_heads} heads, {n_kv_heads} of keys and values, {head_dim} wide: none may be 0, and the second must divide the first"
    )]
    Heads {
        /// The kernel.
        kernel: &'static str,
        /// Heads of queries.
        n_heads: usize,
        /// Heads of keys and values.
        n_kv_heads: usize,
        /// Width of a head.
        head_dim: usize,
    },
    /// A device that is not there.
    #[error("{preference} cannot be used: {why}")]
    NoBackend {
        /// What was asked for.
        preference: BackendPreference,
        /// Why not.
        why: String,
    },
    /// A device that cannot do what was asked of it.
    #[error(transparent)]
    Device(#[from] ns_device::DeviceError),
    /// A device that computed something else than the CPU.
    #[error("the device is refused: {what} is {value} there and {expected} on the CPU")]
    DeviceRefused {
        /// What was compared.
        what: String,
        /// The device's number.
        value: f32,
        /// The right one.
        expected: f32,
    },
    /// A device that was opened for double precision.
    #[error("transformers are computed in single precision, and the device was opened for {precision}")]
    NotSinglePrecision {
        /// What it was opened for.
        precision: ns_device::Precision,
    },
    /// Rounded inputs where there are none.
    #[error("int8 activations are computed on the CPU only, and not on {device}")]
    ExactOnly {
        /// The device.
        device: &'static str,
    },
    /// What encoders do on the CPU only.
    #[error("{what}: encoders compute this on the CPU only, and not on {device}")]
    EncoderOnCpuOnly {
        /// What was asked for.
        what: &'static str,
        /// The device.
        device: &'static str,
    },
    /// A matrix or a batch that kernels cannot count: they have 32 bits.
    #[error("a matrix of this model, or a batch of its tokens, has more elements than a device counts (32 bits)")]
    TooLargeForDevice,
    /// A head for which kernels have no room.
    #[error("heads are {head_dim} wide, and devices compute at most {limit}")]
    HeadTooWide {
        /// Its width.
        head_dim: usize,
        /// The most that can be.
        limit: usize,
    },
    /// Keys and values that another engine computed elsewhere.
    #[error("the keys and values are not where the engine computes")]
    CacheElsewhere,
    /// Keys and values of a model of other sizes.
    #[error("the keys and values are of {found}, and the model has {needed}")]
    CacheOfAnother {
        /// Of the cache.
        found: KvShape,
        /// Of the model.
        needed: KvShape,
    },
    /// The model has no tokenizer.
    #[error("`{}` has no tokenizer", .path.display())]
    NoTokenizer {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The tokenizer could not do it.
    #[error("the tokenizer of `{}` failed: {message}", .path.display())]
    Tokenizer {
        /// Where it is from.
        path: PathBuf,
        /// Its words.
        message: String,
    },
    /// The model has no chat template.
    #[error("`{}` has no chat template", .path.display())]
    NoChatTemplate {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The chat template could not be rendered.
    #[error("the chat template of `{}` failed: {message}", .path.display())]
    ChatTemplate {
        /// Where it is from.
        path: PathBuf,
        /// Its words.
        message: String,
    },
    /// Logits of which no token can be chosen.
    #[error("the logit of token {token} is {value}, and no token can be chosen")]
    Logit {
        /// The token.
        token: usize,
        /// Its logit.
        value: f64,
    },
    /// A node of an ONNX model that is not computed here.
    #[error("node `{node}` ({operator}): {problem}")]
    Node {
        /// Its name in the file, or its number if it has none.
        node: String,
        /// Its operator.
        operator: String,
        /// What is wrong with it, or what is not supported.
        problem: NodeProblem,
    },
    /// An input of an encoder that the model does not take.
    #[error("input `{name}`: {problem}")]
    EncoderInput {
        /// Its name.
        name: String,
        /// What is wrong with it.
        problem: InputProblem,
    },
    /// A weight that the form in which weights are to be stored does not have.
    #[error("tensor `{tensor}`: {value} cannot be stored as {storage}, whose largest number is {largest}")]
    WeightStorage {
        /// Its name in the file.
        tensor: String,
        /// The weight.
        value: f32,
        /// The form.
        storage: &'static str,
        /// The largest number of that form.
        largest: f32,
    },
    /// A reference whose weights would be rounded.
    #[error("weights are stored as {storage} for single precision only")]
    StorageOfDouble {
        /// The form.
        storage: &'static str,
    },
    /// Histograms of a score that cannot be filled.
    #[error(transparent)]
    Histogram(#[from] HistogramProblem),
    /// A gradient that the model does not have.
    #[error(transparent)]
    Gradient(#[from] GradientProblem),
    /// One of several variations of events cannot be computed.
    #[error("variation `{name}`: {source}")]
    InVariation {
        /// Its name.
        name: String,
        /// The error of that part.
        source: Box<Error>,
    },
    /// A setting of the sampler that means nothing.
    #[error("{setting} is {value}, and {expected}")]
    Sampling {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        expected: &'static str,
    },
}

impl Error {
    /// Returns one line of advice, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Error::Memory { .. } => {
                Some("a shorter context or a quantised model needs less; --memory-limit changes the limit")
            }
            Error::NoTokenizer { .. } => Some("give token ids with --tokens, and no --stop"),
            Error::Node { problem, .. } => problem.hint(),
            Error::Malformed { problem: Problem::Superfluous, .. } => {
                Some("`architectures` and the sizes in config.json say which tensors a model has")
            }
            Error::EncoderInput { problem, .. } => problem.hint(),
            Error::Histogram(problem) => problem.hint(),
            Error::Gradient(problem) => problem.hint(),
            Error::InVariation { source, .. } => source.hint(),
            Error::WeightStorage { .. } => Some("f32 has every number of the file, and bf16 has numbers as large"),
            Error::StorageOfDouble { .. } => Some("double precision is a reference: it has the numbers of the file"),
            Error::ExactOnly { .. } => Some("leave out --activations, or pass --device cpu"),
            Error::NoBackend { .. }
            | Error::Device(_)
            | Error::DeviceRefused { .. }
            | Error::EncoderOnCpuOnly { .. }
            | Error::TooLargeForDevice
            | Error::HeadTooWide { .. } => Some("`--device cpu` computes here"),
            _ => None,
        }
    }

    pub(crate) fn node(node: &str, operator: &str, problem: NodeProblem) -> Error {
        Error::Node { node: brief(node, NAME), operator: brief(operator, NAME), problem: problem.brief() }
    }

    pub(crate) fn weight_storage(tensor: &str, value: f32, storage: &'static str, largest: f32) -> Error {
        Error::WeightStorage { tensor: brief(tensor, NAME), value, storage, largest }
    }

    pub(crate) fn malformed(path: impl Into<PathBuf>, field: impl Into<String>, problem: Problem) -> Error {
        let field = brief(&field.into(), NAME);
        Error::Malformed { path: path.into(), field, problem: problem.brief() }
    }
}

/// What is wrong with a part of a file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is not there.
    #[error("it is missing")]
    Missing,
    /// The file ends before it does.
    #[error("it needs {needed} bytes, and the file has {available} left")]
    Truncated {
        /// What it needs.
        needed: u64,
        /// What there is.
        available: u64,
    },
    /// Not the file that it should be.
    #[error("it should be {expected}, and is {found}")]
    Unexpected {
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// Something that exists and that is not known here.
    #[error("{what} `{found}` is not supported")]
    Unsupported {
        /// What kind of thing.
        what: &'static str,
        /// Its name, as found.
        found: String,
    },
    /// A number that makes no sense.
    #[error("{value} is out of range: {expected}")]
    OutOfRange {
        /// The number.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
    /// Text that is not JSON, or JSON of another shape.
    #[error("{message}")]
    Json {
        /// The parser's message, with line and column.
        message: String,
    },
    /// Bytes that are not a message of the format.
    #[error("{message}")]
    Protobuf {
        /// The decoder's message.
        message: String,
    },
    /// A key or a tensor that occurs more than once.
    #[error("it occurs more than once")]
    Duplicate,
    /// A tensor that no part of the model is made of.
    #[error("the model that the configuration describes has no such tensor")]
    Superfluous,
    /// A weight that is infinite or no number.
    #[error("number {place} is {value}, and weights must be finite")]
    NotFinite {
        /// Which, from 0, the last axis running fastest.
        place: usize,
        /// What it is.
        value: f32,
    },
    /// Text that is not UTF-8.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// A file that is named and is not there.
    #[error("there is no file `{name}` beside it")]
    NoSuchFile {
        /// The name.
        name: String,
    },
    /// A name that leaves the folder.
    #[error("`{name}` is not a plain file name")]
    NotAFileName {
        /// The name.
        name: String,
    },
}

/// Why a node of a model is not computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeProblem {
    /// An operator that is not known here.
    #[error("the operator is not supported")]
    Unsupported,
    /// An operator of a set that is not ONNX's own.
    #[error("operators of `{domain}` are not supported")]
    Domain {
        /// The name of the set.
        domain: String,
    },
    /// An attribute, or a value of one, that is not supported.
    #[error("attribute `{attribute}` is {value}, which is not supported")]
    Attribute {
        /// Its name.
        attribute: String,
        /// Its value.
        value: String,
    },
    /// Inputs of shapes that the operator does not take.
    #[error("inputs of shapes {shapes} do not fit together")]
    Shapes {
        /// All of them.
        shapes: String,
    },
    /// An input that is missing, or of a type that the operator does not take.
    #[error("input {index} is missing or of the wrong type")]
    Input {
        /// Which, from 0.
        index: usize,
    },
    /// An input that must not depend on the numbers of events.
    #[error("input {index} depends on the numbers of the events, and decides on a shape")]
    NotConstant {
        /// Which, from 0.
        index: usize,
    },
    /// An axis or a constant index that is out of range.
    #[error("an index is out of range")]
    Index,
    /// An index among numbers that is out of range.
    #[error("the index {index} is out of range: there are {size}")]
    IndexOutOfRange {
        /// What it is; negative ones count from the end.
        index: i64,
        /// How many there are to choose from.
        size: usize,
    },
    /// More outputs than are computed.
    #[error("not all of its outputs are supported")]
    Outputs,
    /// Branches within branches.
    #[error("branches are nested deeper than {limit}")]
    Depth {
        /// The most that is read.
        limit: usize,
    },
    /// An operator whose derivative with respect to an input is not computed.
    #[error("its derivative is not computed")]
    NoGradient,
    /// An operator that devices do not compute.
    #[error("devices have no kernel for it with {elements}")]
    NoKernel {
        /// What it is computed of.
        elements: &'static str,
    },
    /// A constant that devices do not have.
    #[error("its constant {value} has more than 32 bits, and devices have no such integers")]
    DeviceInteger {
        /// The integer.
        value: i64,
    },
    /// A number that devices cannot have.
    #[error("one of its results has more than 32 bits, and devices have no such integers")]
    DeviceResult,
    /// A tensor of more elements than are computed.
    #[error("a tensor of shape {shape} has more than {limit} elements")]
    TooLarge {
        /// Its shape.
        shape: String,
        /// The most that is computed.
        limit: usize,
    },
}

impl NodeProblem {
    /// Returns one line of advice, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            NodeProblem::Unsupported | NodeProblem::Domain { .. } | NodeProblem::Attribute { .. } => {
                Some("the operators that are computed are listed in torchless/docs/encoders.md")
            }
            NodeProblem::NotConstant { .. } => Some("shapes may depend on the shapes of inputs only"),
            NodeProblem::NoGradient => {
                Some("weights of normalisations and convolutions, and limits of Clip, must not depend on an input")
            }
            NodeProblem::NoKernel { .. } | NodeProblem::DeviceInteger { .. } | NodeProblem::DeviceResult => {
                Some("`--device cpu` computes it")
            }
            NodeProblem::TooLarge { .. } => Some("give fewer events at once, or shorter ones"),
            _ => None,
        }
    }

    /// Shortens and escapes what it quotes of a file.
    fn brief(mut self) -> NodeProblem {
        match &mut self {
            NodeProblem::Domain { domain } => *domain = brief(domain, NAME),
            NodeProblem::Attribute { attribute, value } => {
                *attribute = brief(attribute, NAME);
                *value = brief(value, NAME);
            }
            NodeProblem::Shapes { shapes: text } | NodeProblem::TooLarge { shape: text, .. } => {
                *text = brief(text, SENTENCE);
            }
            _ => {}
        }
        self
    }
}

/// The most characters that a message quotes of a name or a value of a file, and of a sentence
/// about them.
const NAME: usize = 80;
const SENTENCE: usize = 160;

/// Returns a name from a file as messages quote it.
pub(crate) fn quoted(name: &str) -> String {
    brief(name, NAME)
}

/// Returns names of a file in quotes, as messages list them.
fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{}`", quoted(name))).collect::<Vec<_>>().join(", ")
}

/// Returns the message of a program from a file, as messages quote it.
pub(crate) fn quoted_sentence(text: &str) -> String {
    brief(text, SENTENCE)
}

/// Quotes `text` of a file as messages do: what does not print is escaped, and of more than `most`
/// characters the middle is left out.
fn brief(text: &str, most: usize) -> String {
    let place = |character: usize| text.char_indices().nth(character).map(|(at, _)| at);
    if place(most).is_none() {
        return ns_terminal::escape(text).into_owned();
    }
    let n_characters = text.chars().count();
    let (first, last) = (place(most / 2), place(n_characters - (most / 2 - 1)));
    let [first, last] =
        [&text[..first.unwrap_or_default()], &text[last.unwrap_or_default()..]].map(ns_terminal::escape);
    format!("{first}…{last}")
}

impl Problem {
    /// Shortens and escapes what it quotes of a file.
    fn brief(mut self) -> Problem {
        match &mut self {
            Problem::Unexpected { expected, found } => {
                *expected = brief(expected, SENTENCE);
                *found = brief(found, SENTENCE);
            }
            Problem::Unsupported { found: text, .. }
            | Problem::OutOfRange { value: text, .. }
            | Problem::NoSuchFile { name: text }
            | Problem::NotAFileName { name: text } => *text = brief(text, NAME),
            Problem::Json { message } | Problem::Protobuf { message } => *message = brief(message, SENTENCE),
            Problem::Missing
            | Problem::Truncated { .. }
            | Problem::Duplicate
            | Problem::Superfluous
            | Problem::NotFinite { .. }
            | Problem::NotUtf8 => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_of_files_are_short_and_printable() {
        let name = format!("tensor `\u{1b}[2J{}\n\u{202e}é'\"\\`", "é".repeat(10_000));
        let problem = Problem::Unexpected { expected: "a\tb".into(), found: "x".repeat(1_000_000) };
        let said = Error::malformed("f", name, problem).to_string();
        assert!(said.starts_with("in `f`: tensor `\\u{1b}[2Jéé"), "{said}");
        assert!(said.contains("é…é") && said.contains("é\\n\\u{202e}é'\"\\`: it should be a\\tb, and is xx"), "{said}");
        assert!(said.chars().count() < 300 && !said.contains(|character: char| character.is_control()), "{said}");
    }

    #[test]
    fn short_names_are_quoted_whole() {
        for n in [0, 1, 79, 80] {
            assert_eq!(brief(&"é".repeat(n), 80), "é".repeat(n));
        }
        assert_eq!(brief(&"é".repeat(81), 80), format!("{}…{}", "é".repeat(40), "é".repeat(39)));
    }
}
