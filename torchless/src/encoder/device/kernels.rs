//! The encoders' kernels by name, and their one text for every device.

use ns_device::{Kernel, KernelModule, emulated_kernels};

use crate::device::text_of;

/// The kernels of `kernels/encoder/kernels.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EncoderKernel {
    MapReals,
    CombineReals,
    CompareReals,
    CombineInts,
    TruthOfInts,
    TruthOfReals,
    RealsOfInts,
    ChooseReals,
    ChooseInts,
    ClipReals,
    PlaceReals,
    PlaceInts,
    FillReals,
    FillInts,
    CheckIndices,
    GatherReals,
    GatherInts,
    ScatterReals,
    MapWide,
    CombineWide,
    SumWide,
    ReduceReals,
    SoftmaxRows,
    NormRows,
    MultiplyMatrices,
}

static MODULE: KernelModule = KernelModule {
    name: "encoder",
    ptx_f64: None,
    ptx_f32: text_of(
        cfg!(any(feature = "cuda", feature = "gpu")),
        include_str!("../../../kernels/encoder/encoder.f32.ptx"),
    ),
    // Put together by the build script: kernels/encoder/all.h with all that it includes.
    source: text_of(
        cfg!(any(feature = "metal", feature = "gpu")),
        include_str!(concat!(env!("OUT_DIR"), "/encoder.metal")),
    ),
    emulated: emulated_kernels![
        map_reals,
        combine_reals,
        compare_reals,
        combine_ints,
        truth_of_ints,
        truth_of_reals,
        reals_of_ints,
        choose_reals,
        choose_ints,
        clip_reals,
        place_reals,
        place_ints,
        fill_reals,
        fill_ints,
        check_indices,
        gather_reals,
        gather_ints,
        scatter_reals,
        map_wide,
        combine_wide,
        sum_wide,
        reduce_reals,
        softmax_rows,
        norm_rows,
        multiply_matrices
    ],
};

impl Kernel for EncoderKernel {
    fn module(&self) -> &'static KernelModule {
        &MODULE
    }

    fn name(&self) -> &'static str {
        match self {
            Self::MapReals => "map_reals",
            Self::CombineReals => "combine_reals",
            Self::CompareReals => "compare_reals",
            Self::CombineInts => "combine_ints",
            Self::TruthOfInts => "truth_of_ints",
            Self::TruthOfReals => "truth_of_reals",
            Self::RealsOfInts => "reals_of_ints",
            Self::ChooseReals => "choose_reals",
            Self::ChooseInts => "choose_ints",
            Self::ClipReals => "clip_reals",
            Self::PlaceReals => "place_reals",
            Self::PlaceInts => "place_ints",
            Self::FillReals => "fill_reals",
            Self::FillInts => "fill_ints",
            Self::CheckIndices => "check_indices",
            Self::GatherReals => "gather_reals",
            Self::GatherInts => "gather_ints",
            Self::ScatterReals => "scatter_reals",
            Self::MapWide => "map_wide",
            Self::CombineWide => "combine_wide",
            Self::SumWide => "sum_wide",
            Self::ReduceReals => "reduce_reals",
            Self::SoftmaxRows => "softmax_rows",
            Self::NormRows => "norm_rows",
            Self::MultiplyMatrices => "multiply_matrices",
        }
    }
}
