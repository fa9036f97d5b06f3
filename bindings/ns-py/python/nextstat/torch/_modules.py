"""Losses as modules: what a training loop minimises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ._functions import profiled_nll, significance, upper_limit

if TYPE_CHECKING:
    from ..differentiable import DifferentiableSession
    from ._functions import Inputs


class _SessionModule(torch.nn.Module):
    """A module without parameters over a session, which does not belong to its state."""

    def __init__(self, session: DifferentiableSession) -> None:
        super().__init__()
        self.session = session

    def extra_repr(self) -> str:
        return f"{self.session.n_inputs} inputs"


class ExpectedLimit(_SessionModule):
    """The expected upper limit; the smaller, the better.

    Parameters
    ----------
    session : DifferentiableSession
    level : float
        0.05 for limits at 95% confidence level.
    test_stat : ``"qtilde"`` or ``"q"``
    n_sigma : float
        Which limit of the band; 0 is the median.

    Examples
    --------
    >>> import nextstat, torch
    >>> from nextstat.torch import DifferentiableSession, ExpectedLimit
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> loss = ExpectedLimit(DifferentiableSession(model, "signal"))
    >>> round(loss(torch.tensor([12.0, 11.0], dtype=torch.float64)).item(), 4)
    1.0943
    """

    def __init__(
        self,
        session: DifferentiableSession,
        *,
        level: float = 0.05,
        test_stat: str = "qtilde",
        n_sigma: float = 0.0,
    ) -> None:
        super().__init__(session)
        self.level, self.test_stat, self.n_sigma = level, test_stat, n_sigma

    def forward(self, inputs: Inputs) -> torch.Tensor:
        """Returns the limit at `inputs`; one for each row of a batch."""
        options = {"level": self.level, "test_stat": self.test_stat}
        return upper_limit(self.session, inputs, which=self.n_sigma, **options)


class ExpectedSignificance(_SessionModule):
    """The significance expected of a signal of strength 1.

    The larger, the better: minimise its negative.

    Examples
    --------
    >>> import nextstat, torch
    >>> from nextstat.torch import DifferentiableSession, ExpectedSignificance
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> expected = ExpectedSignificance(DifferentiableSession(model, "signal"))
    >>> round(expected(torch.tensor([12.0, 11.0], dtype=torch.float64)).item(), 4)
    1.8309
    """

    def forward(self, inputs: Inputs) -> torch.Tensor:
        """Returns the significance at `inputs`; one for each row of a batch."""
        return significance(self.session, inputs, asimov=True)


class ProfiledNLL(_SessionModule):
    """The minimum of -ln L over the parameters.

    The parameter of interest is fixed at `mu` if that is given.

    Examples
    --------
    >>> import nextstat, torch
    >>> from nextstat.torch import DifferentiableSession, ProfiledNLL
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> loss = ProfiledNLL(DifferentiableSession(model, "signal"), mu=0.0)
    >>> round(loss(torch.tensor([12.0, 11.0], dtype=torch.float64)).item(), 4)
    13.5296
    """

    def __init__(self, session: DifferentiableSession, *, mu: float | None = None) -> None:
        super().__init__(session)
        self.mu = mu

    def forward(self, inputs: Inputs) -> torch.Tensor:
        """Returns the minimum at `inputs`; one for each row of a batch."""
        return profiled_nll(self.session, inputs, self.mu)
