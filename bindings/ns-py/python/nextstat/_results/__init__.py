"""Results of procedures: frozen containers with named fields."""

from .base import Result, warn_of
from .curves import ContourResult, RankingResult, ScanResult
from .data_sets import FitsResult, ReplicaCovariance
from .documents import CheckResult, CombinationResult, CommandResult, GridResult, InspectResult
from .fits import FitResult, GoodnessOfFit, ReportResult, YieldsResult
from .frozen import Record
from .tests import HypotestResult, LimitResult, SignificanceResult, ToyHypotestResult
from .toys import ToysResult

__all__ = [
    "CheckResult",
    "CombinationResult",
    "CommandResult",
    "ContourResult",
    "FitResult",
    "FitsResult",
    "GoodnessOfFit",
    "GridResult",
    "HypotestResult",
    "InspectResult",
    "LimitResult",
    "RankingResult",
    "Record",
    "ReplicaCovariance",
    "ReportResult",
    "Result",
    "ScanResult",
    "SignificanceResult",
    "ToyHypotestResult",
    "ToysResult",
    "YieldsResult",
    "warn_of",
]
