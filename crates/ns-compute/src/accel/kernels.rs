//! The likelihood's kernels by name, and their one text for every device.

use ns_device::{Kernel, Module, emulated_kernels};

/// The kernels of `kernels/kernels.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LikelihoodKernel {
    /// -ln L of every item.
    Nll,
    /// The same with its gradient.
    NllAndGradient,
    /// One Newton step of every item.
    Newton,
    /// A whole fit of every item.
    Fit,
}

static MODULE: Module = Module {
    name: "likelihood",
    ptx_f64: Some(include_str!("../../kernels/likelihood.f64.ptx")),
    ptx_f32: None,
    // Put together by the build script in the order of kernels/all.h.
    msl: Some(include_str!(concat!(env!("OUT_DIR"), "/likelihood.metal"))),
    emulated: emulated_kernels![nll, nll_and_gradient, newton, fit],
};

impl Kernel for LikelihoodKernel {
    fn module(&self) -> &'static Module {
        &MODULE
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Nll => "nll",
            Self::NllAndGradient => "nll_and_gradient",
            Self::Newton => "newton",
            Self::Fit => "fit",
        }
    }
}
