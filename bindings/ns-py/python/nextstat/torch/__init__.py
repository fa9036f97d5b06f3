"""Profiled statistics as differentiable functions of histograms, for PyTorch.

A network can be trained on the expected limit itself. Every function takes a
`DifferentiableSession` and its inputs: a tensor of M numbers, a batch of them (N × M), or a
dictionary of blocks by name, in which missing blocks keep the values of the model. Gradients are
exact (`docs/explanation/gradients.md`) and computed with the values, in double precision; tensors
in single precision are converted. With a session on an NVIDIA GPU, `nll` and statistics of the
observed data read CUDA tensors in its memory; all other functions compute on the CPU, and refuse an
accelerator's tensors unless the session has `host_copy=True`. A fit that fails raises
`GradientError`.

>>> import nextstat, torch
>>> from nextstat.torch import DifferentiableSession, upper_limit
>>> session = DifferentiableSession(nextstat.load_workspace("examples/simple.json"), "signal")
>>> signal = torch.tensor([12.0, 11.0], dtype=torch.float64, requires_grad=True)
>>> limit = upper_limit(session, signal)
>>> limit.backward()
>>> round(limit.item(), 4), signal.grad.numpy().round(4)
(1.0943, array([-0.0596, -0.0345]))
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as missing:
    raise ImportError("nextstat.torch needs PyTorch: pip install torch") from missing

from ..differentiable import Block, DifferentiableSession, GradientError, ProfiledDifferentiableSession
from ._functions import cls, nll, p_value, profiled_nll, q0, q_mu, q_mu_tilde, sigma_mu, significance, upper_limit
from ._histograms import soft_histogram
from ._modules import ExpectedLimit, ExpectedSignificance, ProfiledNLL

__all__ = [
    "Block",
    "DifferentiableSession",
    "ExpectedLimit",
    "ExpectedSignificance",
    "GradientError",
    "ProfiledDifferentiableSession",
    "ProfiledNLL",
    "cls",
    "nll",
    "p_value",
    "profiled_nll",
    "q0",
    "q_mu",
    "q_mu_tilde",
    "sigma_mu",
    "significance",
    "soft_histogram",
    "upper_limit",
]
