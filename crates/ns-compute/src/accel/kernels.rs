//! The likelihood's kernels by name, and their one text for every device.

use ns_device::{Kernel, KernelModule, emulated_kernels};

/// The kernels of `kernels/kernels.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LikelihoodKernel {
    /// -ln L of every item.
    Nll,
    /// -ln L with its gradient.
    NllAndGradient,
    /// -ln L with its gradients by parameters and by inputs.
    NllAndGradients,
    /// The tables of every set of templates, computed from its inputs.
    SetTemplates,
    /// One Newton step of every item.
    Newton,
    /// A whole fit of every item.
    Fit,
}

static MODULE: KernelModule = KernelModule {
    name: "likelihood",
    ptx_f64: Some(include_str!("../../kernels/likelihood.f64.ptx")),
    ptx_f32: None,
    // Concatenated by the build script in the order of kernels/all.h.
    source: Some(include_str!(concat!(env!("OUT_DIR"), "/likelihood.metal"))),
    emulated: emulated_kernels![nll, nll_and_gradient, nll_and_gradients, set_templates, newton, fit],
};

impl Kernel for LikelihoodKernel {
    fn module(&self) -> &'static KernelModule {
        &MODULE
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Nll => "nll",
            Self::NllAndGradient => "nll_and_gradient",
            Self::NllAndGradients => "nll_and_gradients",
            Self::SetTemplates => "set_templates",
            Self::Newton => "newton",
            Self::Fit => "fit",
        }
    }
}
