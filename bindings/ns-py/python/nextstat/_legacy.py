"""Names that earlier documents have for what other functions do.

New code says `device=` to the functions themselves, and looks at `devices()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._devices import devices
from ._errors import listed
from ._nextstat import BACKENDS
from ._tests import hypotest_toys
from ._toys import fit_toys

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._nextstat import Model
    from ._results import ToyHypotestResult, ToysResult

__all__ = ["fit_toys_batch_gpu", "fit_toys_from_data_gpu", "has_cuda", "has_metal", "hypotest_qtilde_toys_gpu"]


def has_cuda() -> bool:
    """Returns whether this build and this machine have an NVIDIA GPU.

    The GPU is tested when it is first used.

    Examples
    --------
    >>> import nextstat
    >>> nextstat.has_cuda() == ("cuda" in nextstat.devices())
    True
    """
    return "cuda" in devices()


def has_metal() -> bool:
    """Returns whether this build and this machine have an Apple GPU.

    The GPU is tested when it is first used.

    Examples
    --------
    >>> import nextstat
    >>> nextstat.has_metal() == ("metal" in nextstat.devices())
    True
    """
    return "metal" in devices()


def fit_toys_batch_gpu(
    model: Model,
    params: ArrayLike,
    *,
    n_toys: int = 1000,
    seed: int = 0,
    device: str = "cuda",
    **options: Any,
) -> ToysResult:
    """Runs `fit_toys` on a GPU."""
    _require_gpu(device)
    return fit_toys(model, params, n_toys=n_toys, seed=seed, device=device, **options)


def fit_toys_from_data_gpu(
    model: Model, *, n_toys: int = 1000, seed: int = 0, device: str = "cuda", **options: Any
) -> ToysResult:
    """Runs `fit_toys` on a GPU, with toys thrown at the best fit to the data."""
    _require_gpu(device)
    return fit_toys(model, n_toys=n_toys, seed=seed, device=device, **options)


def hypotest_qtilde_toys_gpu(
    model: Model,
    mu: float = 1.0,
    *,
    n_toys: int = 1000,
    seed: int = 0,
    device: str = "cuda",
    **options: Any,
) -> ToyHypotestResult:
    """Runs `hypotest_toys` with q̃ on a GPU."""
    _require_gpu(device)
    return hypotest_toys(
        model, mu, n_toys=n_toys, seed=seed, test_stat="qtilde", device=device, **options
    )


def _require_gpu(device: str) -> None:
    if device.partition(":")[0] not in BACKENDS:
        raise TypeError(f"this is for a GPU: `device` is {listed(BACKENDS, 'or')}, not `{device}`")
