"""Histograms that are differentiable in what they are filled with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence


def soft_histogram(
    values: torch.Tensor,
    edges: torch.Tensor | Sequence[float],
    *,
    bandwidth: float,
    weights: torch.Tensor | None = None,
    kernel: str = "normal",
    overflow: bool = True,
) -> torch.Tensor:
    """Returns a histogram in which every entry is spread over the bins by a kernel: a kernel
    density estimate, integrated over each bin.

    Bin b contains Σ_i w_i [F((e_{b+1} - x_i)/h) - F((e_b - x_i)/h)], with the bandwidth h and the
    distribution F of the kernel. For h → 0 it becomes the histogram.

    Parameters
    ----------
    values : tensor
        What is filled in (n); integers are taken as numbers of PyTorch's default precision.
    edges : tensor or sequence of float
        Edges of the bins (B + 1), ascending; they may require gradients too.
    bandwidth : float
        h, in units of the values; a fraction of a bin.
    weights : tensor, optional
        Weights (n).
    kernel : ``"normal"`` or ``"logistic"``
        A Gaussian kernel, or bins with sigmoid edges.
    overflow : bool
        Whether the first and the last bin extend to infinity, so that nothing is lost.

    Returns
    -------
    tensor
        Contents of the bins (B).

    Examples
    --------
    >>> import torch
    >>> from nextstat.torch import soft_histogram
    >>> values = torch.tensor([0.1, 0.4, 0.45, 0.9], dtype=torch.float64)
    >>> soft_histogram(values, [0.0, 0.5, 1.0], bandwidth=0.05).numpy().round(3)
    array([2.819, 1.181])
    >>> soft_histogram(values, [0.0, 0.5, 1.0], bandwidth=1e-6).numpy()
    array([3., 1.])
    """
    if kernel not in ("normal", "logistic"):
        raise ValueError(f"unknown kernel `{kernel}`: use `normal` or `logistic`")
    if not bandwidth > 0:
        raise ValueError(f"a bandwidth of {bandwidth} is not positive")
    if not values.dtype.is_floating_point:
        values = values.to(torch.get_default_dtype())
    edges = torch.as_tensor(edges, dtype=values.dtype, device=values.device)
    if edges.dim() != 1 or len(edges) < 2 or bool((edges[1:] <= edges[:-1]).any()):
        raise ValueError("edges are at least two numbers, ascending")
    distances = (edges.unsqueeze(1) - values.reshape(1, -1)) / bandwidth
    below = torch.special.ndtr(distances) if kernel == "normal" else torch.sigmoid(distances)
    if overflow:
        ends = torch.ones_like(below[:1])
        below = torch.cat([0 * ends, below[1:-1], ends])
    if weights is not None:
        below = below * weights.reshape(1, -1)
    return (below[1:] - below[:-1]).sum(1)
