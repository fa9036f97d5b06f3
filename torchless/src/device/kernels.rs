//! The transformer's kernels by name, and their one text for every device.

use ns_device::{Kernel, KernelModule, emulated_kernels};

/// The kernels of `kernels/kernels.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransformerKernel {
    Embedding,
    RmsNorm,
    Softmax,
    Silu,
    SiluMul,
    Add,
    Rope,
    MatVec,
    MatVecTiled,
    MatMul,
    Attention,
    AttentionTiles,
    AttentionSum,
    AttentionScores,
    WeightedSum,
}

/// Returns the text of kernels if a backend that reads it is built in: libraries without devices do
/// not carry it.
pub(crate) const fn text_of(is_read: bool, text: &'static str) -> Option<&'static str> {
    if is_read { Some(text) } else { None }
}

static MODULE: KernelModule = KernelModule {
    name: "transformer",
    ptx_f64: None,
    ptx_f32: text_of(cfg!(any(feature = "cuda", feature = "gpu")), include_str!("../../kernels/transformer.f32.ptx")),
    // Put together by the build script: kernels/all.h with all that it includes.
    source: text_of(
        cfg!(any(feature = "metal", feature = "gpu")),
        include_str!(concat!(env!("OUT_DIR"), "/transformer.metal")),
    ),
    emulated: emulated_kernels![
        embedding,
        rmsnorm,
        softmax,
        silu,
        silu_mul,
        add,
        rope,
        matvec,
        matvec_tiled,
        matmul,
        attention,
        attention_tiles,
        attention_sum,
        attention_scores,
        weighted_sum
    ],
};

impl Kernel for TransformerKernel {
    fn module(&self) -> &'static KernelModule {
        &MODULE
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::RmsNorm => "rmsnorm",
            Self::Softmax => "softmax",
            Self::Silu => "silu",
            Self::SiluMul => "silu_mul",
            Self::Add => "add",
            Self::Rope => "rope",
            Self::MatVec => "matvec",
            Self::MatVecTiled => "matvec_tiled",
            Self::MatMul => "matmul",
            Self::Attention => "attention",
            Self::AttentionTiles => "attention_tiles",
            Self::AttentionSum => "attention_sum",
            Self::AttentionScores => "attention_scores",
            Self::WeightedSum => "weighted_sum",
        }
    }
}
