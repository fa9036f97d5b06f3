//! The arguments of the command: clap structs whose doc comments are the help.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cpu::integers::Activations;
use crate::encoder::WeightStorage;
use crate::preference::BackendPreference;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  done, and `verify` found a difference
  2  bad input or usage

Answers go to standard output, everything else to standard error.";

/// Exact transformer inference: Llama, Mistral and Qwen2 from Hugging Face folders and GGUF files
#[derive(Debug, Parser)]
#[command(name = "torchless", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) verb: Verb,
}

/// One variant per verb.
#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Continue a text
    Generate(GenerateArgs),
    /// Answer a conversation, as the model's chat template has it
    Chat(ChatArgs),
    /// Print the logits after tokens
    Logits(LogitsArgs),
    /// Print log-likelihood ratios of sequences of tokens under two prefixes
    Score(ScoreArgs),
    /// Compute the outputs of an encoder for events in NumPy's files
    Encode(EncodeArgs),
    /// Turn text into token ids
    Tokenize(TokenizeArgs),
    /// Say what a model is, what memory it needs and what will compute it
    Info(InfoArgs),
    /// Compare with stored reference logits, layer by layer where the reference has them
    Verify(VerifyArgs),
    /// Measure prefill and decoding
    Bench(BenchArgs),
}

/// Which model, and what computes it.
#[derive(Debug, Args)]
pub(super) struct ModelArgs {
    /// A Hugging Face folder, a GGUF file, or a safetensors file beside its config.json
    #[arg(long, value_name = "DIR|FILE")]
    pub(super) model: PathBuf,

    /// What computes; a device that is not there is an error, and auto is the CPU
    #[arg(long, visible_alias = "gpu", value_enum, default_value = "auto")]
    pub(super) device: DeviceArg,

    /// What products of quantised weights see of their inputs; int8 is faster and less exact, and
    /// only the CPU has it
    #[arg(long, value_enum, default_value = "exact")]
    pub(super) activations: ActivationsArg,

    /// Threads of the CPU; 0 for as many as the machine has. No number changes a result
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) threads: usize,

    /// Tokens that are computed at once, at most. No number changes a result
    #[arg(long, value_name = "N")]
    pub(super) chunk: Option<usize>,

    /// Memory for weights, keys and values, as 8GiB; what is available if not given
    #[arg(long, value_name = "SIZE")]
    pub(super) memory_limit: Option<String>,
}

/// What computes.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceArg(pub(super) BackendPreference);

impl ValueEnum for DeviceArg {
    fn value_variants<'a>() -> &'a [Self] {
        static CHOICES: LazyLock<Vec<DeviceArg>> =
            LazyLock::new(|| BackendPreference::offered().map(DeviceArg).collect());
        &CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

/// What products see of their inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ActivationsArg {
    Exact,
    Int8,
}

impl From<ActivationsArg> for Activations {
    fn from(activations: ActivationsArg) -> Activations {
        match activations {
            ActivationsArg::Exact => Activations::Exact,
            ActivationsArg::Int8 => Activations::Int8,
        }
    }
}

/// How the matrices of an encoder are stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeightsArg(pub(super) WeightStorage);

impl ValueEnum for WeightsArg {
    fn value_variants<'a>() -> &'a [Self] {
        static CHOICES: LazyLock<Vec<WeightsArg>> = LazyLock::new(|| WeightStorage::ALL.map(WeightsArg).to_vec());
        &CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

/// What is given to the model.
#[derive(Debug, Args)]
pub(super) struct InputArgs {
    /// Token ids, as 0,52,29
    #[arg(long, value_name = "IDS", value_delimiter = ',', conflicts_with = "prompt")]
    pub(super) tokens: Vec<u32>,

    /// Text, for the model's tokenizer
    #[arg(long, value_name = "TEXT")]
    pub(super) prompt: Option<String>,
}

/// How tokens are chosen, and when to end.
#[derive(Debug, Args)]
pub(super) struct SamplingArgs {
    /// Tokens at most
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub(super) max_tokens: usize,

    /// Divide logits by this; 0 takes the most probable token
    #[arg(long, value_name = "T", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(super) temperature: f64,

    /// Keep the k most probable tokens
    #[arg(long, value_name = "K")]
    pub(super) top_k: Option<usize>,

    /// Keep the most probable tokens that together reach this probability
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(super) top_p: Option<f64>,

    /// Keep tokens of at least this part of the greatest probability
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(super) min_p: Option<f64>,

    /// Make tokens that were there before less probable
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(super) repetition_penalty: Option<f64>,

    /// The same tokens for the same seed
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,

    /// End before this text; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(super) stop: Vec<String>,

    /// Continue after the token that ends a text
    #[arg(long)]
    pub(super) ignore_eos: bool,
}

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub(super) struct GenerateArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    #[command(flatten)]
    pub(super) input: InputArgs,
    #[command(flatten)]
    pub(super) sampling: SamplingArgs,
    /// Print {"tokens": …, "text": …, "finish": …} at the end, instead of the text as it is
    /// generated
    #[arg(long)]
    pub(super) json: bool,
}

/// Arguments of `chat`.
#[derive(Debug, Args)]
pub(super) struct ChatArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    /// What the user says
    #[arg(long, value_name = "TEXT", required_unless_present = "messages", conflicts_with = "messages")]
    pub(super) user: Option<String>,
    /// What the system says first
    #[arg(long, value_name = "TEXT", conflicts_with = "messages")]
    pub(super) system: Option<String>,
    /// A conversation so far: JSON, [{"role": …, "content": …}, …]
    #[arg(long, value_name = "FILE")]
    pub(super) messages: Option<PathBuf>,
    /// Print the text that the model is given, and its ids with --json, and stop
    #[arg(long)]
    pub(super) render: bool,
    #[command(flatten)]
    pub(super) sampling: SamplingArgs,
    /// Print {"tokens": …, "text": …, "finish": …} at the end, instead of the text as it is
    /// generated
    #[arg(long)]
    pub(super) json: bool,
}

/// Arguments of `logits`.
#[derive(Debug, Args)]
pub(super) struct LogitsArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    #[command(flatten)]
    pub(super) input: InputArgs,
    /// The row of every token, not of the last one only
    #[arg(long)]
    pub(super) all: bool,
    /// Print {"logits": [[…], …]}, a row for each position, instead of the ten most probable tokens
    #[arg(long)]
    pub(super) json: bool,
}

/// Arguments of `score`.
#[derive(Debug, Args)]
pub(super) struct ScoreArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    /// The prefix whose likelihood is above the line: token ids
    #[arg(long, value_name = "IDS", value_delimiter = ',', required = true)]
    pub(super) prefix: Vec<u32>,
    /// The prefix whose likelihood is below the line: token ids
    #[arg(long, value_name = "IDS", value_delimiter = ',', required = true)]
    pub(super) against: Vec<u32>,
    /// JSON: a list of lists of token ids, or an object of named ones (its `events` if it has any)
    #[arg(long, value_name = "FILE")]
    pub(super) events: PathBuf,
    /// The token that ends every sequence; the model's own if not given
    #[arg(long, value_name = "ID", conflicts_with = "no_end")]
    pub(super) end: Option<u32>,
    /// Score sequences without an end
    #[arg(long)]
    pub(super) no_end: bool,
    /// Count ratios in bins with these edges, as -inf,-2,0,2,inf
    #[arg(long, value_name = "EDGES", value_delimiter = ',', allow_hyphen_values = true)]
    pub(super) edges: Vec<f64>,
    /// Print {"llr": …} (and "hist" with --edges), instead of a table
    #[arg(long)]
    pub(super) json: bool,
}

/// Arguments of `tokenize`.
#[derive(Debug, Args)]
pub(super) struct TokenizeArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    /// The text
    #[arg(long, value_name = "TEXT", required_unless_present = "decode")]
    pub(super) text: Option<String>,
    /// Leave out the tokens before and after every text; with --decode, every special token
    #[arg(long)]
    pub(super) no_special: bool,
    /// Turn these token ids into text instead
    #[arg(long, value_name = "IDS", value_delimiter = ',', conflicts_with = "text")]
    pub(super) decode: Vec<u32>,
    /// Print {"ids": …, "tokens": …} or {"text": …}
    #[arg(long)]
    pub(super) json: bool,
}

/// Arguments of `info`.
#[derive(Debug, Args)]
pub(super) struct InfoArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Parses a tolerance: NaN would refuse every difference, and infinity none.
fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "it must be a number, 0 or above, and not infinite".into())
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    /// The folder with reference.json and reference_logits.safetensors; the model's if not given
    #[arg(long, value_name = "DIR")]
    pub(super) reference: Option<PathBuf>,
    /// The folder whose reference.json has the prompts, if the reference has none; the one beside
    /// it that has them all if not given
    #[arg(long, value_name = "DIR")]
    pub(super) prompts: Option<PathBuf>,
    /// Which of a reference's sets; that of the format of most of the model's matrices if not given
    #[arg(long, value_name = "NAME")]
    pub(super) set: Option<String>,
    /// Differences of logits up to this are none; 0 demands the same numbers
    #[arg(long, default_value_t = 1e-4, value_parser = tolerance, allow_hyphen_values = true)]
    pub(super) tolerance: f64,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Arguments of `encode`.
#[derive(Debug, Args)]
pub(super) struct EncodeArgs {
    /// An ONNX file, or a folder with `model.safetensors` and `config.json`
    #[arg(value_name = "MODEL")]
    pub(super) model: PathBuf,

    /// Arrays whose first axis is that of events: an .npz with the names of the model's inputs, or
    /// an .npy if there is one input. With an array NAME.offsets in the .npz, NAME has a row of
    /// each particle, and event e the rows offsets[e] to offsets[e + 1] - 1; the mask may be left
    /// out
    #[arg(long, value_name = "FILE")]
    pub(super) inputs: PathBuf,

    /// Where the outputs go: an .npy, or an .npz if there are several
    #[arg(long, value_name = "FILE")]
    pub(super) output: PathBuf,

    /// Where gradients with respect to the inputs go, an .npz: of one number of every event. Those
    /// of ragged inputs have a row of each particle
    #[arg(long, value_name = "FILE.npz")]
    pub(super) gradients: Option<PathBuf>,

    /// The output whose gradients are computed, if the model has several
    #[arg(long, value_name = "NAME", requires = "gradients")]
    pub(super) gradients_of: Option<String>,

    /// Its column, from 0: which of an event's numbers
    #[arg(long, value_name = "N", default_value_t = 0, requires = "gradients")]
    pub(super) column: usize,

    /// The input that is 1 for particles and 0 for padding: events are cut to their lengths, which
    /// is faster and changes no bit
    #[arg(long, value_name = "NAME")]
    pub(super) mask: Option<String>,

    /// Events that are computed together, at most. No number changes a result
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(super) batch: usize,

    /// What computes; a device that is not there is an error, and auto is the CPU
    #[arg(long, visible_alias = "gpu", value_enum, default_value = "auto")]
    pub(super) device: DeviceArg,

    /// Threads of the CPU; 0 for as many as the machine has. No number changes a result
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) threads: usize,

    /// How matrices are stored: f16 and bf16 take half the memory, and lose nothing of a file that
    /// has such numbers; int8 is approximate: weights and the inputs of products are rounded to
    /// bytes
    #[arg(long, value_enum, default_value = "f32", value_name = "FORM", conflicts_with = "double")]
    pub(super) weights: WeightsArg,

    /// Compute in double precision, by plain loops: a reference, and slow
    #[arg(long)]
    pub(super) double: bool,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    /// Tokens of the prompt
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(super) prefill: usize,
    /// Tokens that are decoded after it
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(super) decode: usize,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}
