//! The configuration of a model: sizes, rotary positions, windows and biases, independent of the
//! file format.

use std::f64::consts::TAU;
use std::fmt;

/// The families of decoders that are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// Llama and what has its shape.
    Llama,
    /// Llama with a sliding window.
    Mistral,
    /// Llama with biases of queries, keys and values.
    Qwen2,
}

impl Architecture {
    /// Every one.
    pub const ALL: [Architecture; 3] = [Architecture::Llama, Architecture::Mistral, Architecture::Qwen2];

    /// Returns the name in `model_type`.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::Llama => "llama",
            Architecture::Mistral => "mistral",
            Architecture::Qwen2 => "qwen2",
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Which two numbers of a head are turned together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RopePairs {
    /// i and i + D/2: what Hugging Face's files are made for.
    Halves,
    /// 2i and 2i + 1: what GGUF files of the architecture `llama` are made for.
    Neighbours,
}

/// How frequencies are changed for contexts longer than the one that was trained.
#[derive(Debug, Clone, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// All are divided.
    Linear {
        /// By this.
        factor: f64,
    },
    /// Low ones are divided, high ones stay, those between go over smoothly.
    Llama3 {
        /// By this.
        factor: f64,
        /// Wavelengths above the original context divided by this are divided.
        low_freq_factor: f64,
        /// Wavelengths below the original context divided by this stay.
        high_freq_factor: f64,
        /// The context that was trained.
        original_context: f64,
    },
    /// Each is divided by its own factor (GGUF's `rope_freqs.weight`, times the linear one): (D/2).
    Divided(Vec<f64>),
}

/// Rotary positions.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// The base θ.
    pub theta: f64,
    /// How frequencies are changed.
    pub scaling: RopeScaling,
    /// Which two numbers are turned together.
    pub pairs: RopePairs,
}

impl Rope {
    /// Returns the angle of each pair per position, scaled: (D/2) of θ^(−2i/D).
    ///
    /// ```
    /// use torchless::config::{Rope, RopePairs, RopeScaling};
    /// let rope = Rope { theta: 10_000.0, scaling: RopeScaling::Linear { factor: 2.0 }, pairs: RopePairs::Halves };
    /// assert_eq!(rope.frequencies(4), [0.5, 0.005]);
    /// ```
    pub fn frequencies(&self, head_dim: usize) -> Vec<f64> {
        let plain = (0..head_dim / 2).map(|pair| self.theta.powf(-2.0 * pair as f64 / head_dim as f64));
        match &self.scaling {
            RopeScaling::None => plain.collect(),
            RopeScaling::Linear { factor } => plain.map(|frequency| frequency / factor).collect(),
            RopeScaling::Llama3 { factor, low_freq_factor: low, high_freq_factor: high, original_context } => plain
                .map(|frequency| {
                    let turns = original_context * frequency / TAU;
                    let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                    frequency / factor * (1.0 - kept) + frequency * kept
                })
                .collect(),
            RopeScaling::Divided(factors) => plain.zip(factors).map(|(frequency, factor)| frequency / factor).collect(),
        }
    }

    /// Writes cosines and sines of one position, from angles in `f64`: (D/2) each.
    pub fn turn(frequencies: &[f64], position: usize, cosines: &mut [f32], sines: &mut [f32]) {
        for ((frequency, cosine), sine) in frequencies.iter().zip(cosines).zip(sines) {
            let angle = position as f64 * frequency;
            (*cosine, *sine) = (angle.cos() as f32, angle.sin() as f32);
        }
    }
}

/// Which layers see only the last positions, and how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Windows {
    /// Every layer sees everything.
    None,
    /// Every layer sees this many positions, its own included.
    All(usize),
    /// Layers from the first one on see this many.
    From {
        /// The first such layer.
        layer: usize,
        /// Positions, a layer's own included.
        window: usize,
    },
    /// Layer by layer, whether it has the window.
    Listed {
        /// (layers)
        has_window: Vec<bool>,
        /// Positions, a layer's own included.
        window: usize,
    },
}

impl Windows {
    /// Returns the number of positions that `layer` sees, its own included; `None` if it sees all.
    pub fn of_layer(&self, layer: usize) -> Option<usize> {
        match self {
            Windows::None => None,
            Windows::All(window) => Some(*window),
            Windows::From { layer: first, window } => (layer >= *first).then_some(*window),
            Windows::Listed { has_window, window } => has_window.get(layer).is_some_and(|has| *has).then_some(*window),
        }
    }
}

/// Which products have biases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Biases {
    /// Queries, keys and values.
    pub qkv: bool,
    /// The output of attention.
    pub output: bool,
    /// All three of the feed-forward network.
    pub mlp: bool,
}

/// Everything about a model but its weights. Sizes have been checked: none is 0, and the product of
/// two fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The family.
    pub architecture: Architecture,
    /// Width of the residual stream.
    pub hidden: usize,
    /// The number of layers.
    pub n_layers: usize,
    /// Heads of queries.
    pub n_heads: usize,
    /// Heads of keys and values; divides `n_heads`. Head h of queries uses head h / (n_heads /
    /// n_kv_heads).
    pub n_kv_heads: usize,
    /// D, the width of a head; even.
    pub head_dim: usize,
    /// Width of the feed-forward network.
    pub intermediate: usize,
    /// The number of tokens.
    pub vocabulary: usize,
    /// The number of positions.
    pub context: usize,
    /// ε of the norms.
    pub epsilon: f64,
    /// Rotary positions.
    pub rope: Rope,
    /// Sliding windows.
    pub windows: Windows,
    /// The products that have a bias.
    pub biases: Biases,
    /// Whether the embedding is also the output matrix.
    pub is_tied: bool,
    /// The token that text begins with.
    pub bos: Option<u32>,
    /// The tokens that end a text, the first one preferred.
    pub eos: Vec<u32>,
}

impl Config {
    /// Returns the width of all queries.
    pub fn query_width(&self) -> usize {
        self.n_heads * self.head_dim
    }

    /// Returns the width of all keys, or values.
    pub fn kv_width(&self) -> usize {
        self.n_kv_heads * self.head_dim
    }
}

/// What the keys and values of a position are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvShape {
    /// Layers that have some.
    pub layers: usize,
    /// Heads of each layer.
    pub heads: usize,
    /// Numbers of each head.
    pub head_dim: usize,
}

impl fmt::Display for KvShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KvShape { layers, heads, head_dim } = self;
        write!(formatter, "{layers} layers, {heads} heads of {head_dim} each")
    }
}
