"""Statistical inference for binned particle-physics analyses: HistFactory likelihoods, as in pyhf and ROOT.

>>> import nextstat
>>> model = nextstat.load_workspace("examples/simple.json")
>>> round(nextstat.hypotest(model, 1.0).CLs_obs, 5)
0.5963
"""

from ._api import (
    DeviceError,
    NextstatWarning,
    asimov_data,
    contours,
    devices,
    fit,
    fit_toys,
    goodness_of_fit,
    has_cuda,
    has_metal,
    hypotest,
    hypotest_toys,
    load_workspace,
    model_of,
    profile_scan,
    ranking,
    significance,
    throw_toys,
    upper_limit,
    yields,
)
from ._nextstat import (
    DataError,
    Model,
    ModelError,
    NextstatError,
    ParameterError,
    ToyError,
    WorkspaceError,
    __version__,
)
from ._results import (
    ContourResult,
    FitResult,
    GoodnessOfFit,
    HypotestResult,
    LimitResult,
    RankingResult,
    Result,
    ScanResult,
    SignificanceResult,
    ToyHypotestResult,
    ToysResult,
    YieldsResult,
)

__all__ = [name for name in dir() if not name.startswith("_")]
