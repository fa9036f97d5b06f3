"""From histograms to a workspace: `build` follows a configuration (cabinetry's, with a section of
our own), and the other functions do its steps one by one, to templates or to any workspace.

Steps on templates: `smooth_353qh`, `smooth_ratio`, `merged_bins` and `smooth_by_rebinning`,
`mirrored` and `averaged`, `split`. Steps on workspaces: `drop_no_ops`, `prune`, `prune_staterror`,
`decorrelate`, `without_samples`, `patch_set`. ROOT files need uproot and YAML needs PyYAML: both
come with the extra `build`.

>>> from nextstat.build import smooth_353qh
>>> smooth_353qh([1.0, 2.0, 9.0, 4.0, 5.0, 6.0]).tolist()
[1.0, 2.25, 3.75, 4.75, 5.0, 5.0]
"""

from .config import load
from .decorrelation import decorrelate
from .patch_sets import patch_set, without_samples
from .pipeline import BuildResult, build, build_patch_set
from .pruning import Removal, drop_no_ops, effect, prune, prune_staterror
from .reports import report
from .settings import Config, PruningThresholds, Rule
from .smoothing import merged_bins, smooth_353qh, smooth_by_rebinning, smooth_ratio
from .templates import Template, TemplatePair, averaged, mirrored, split

__all__ = [
    "BuildResult",
    "Config",
    "PruningThresholds",
    "Removal",
    "Rule",
    "Template",
    "TemplatePair",
    "averaged",
    "build",
    "build_patch_set",
    "decorrelate",
    "drop_no_ops",
    "effect",
    "load",
    "merged_bins",
    "mirrored",
    "patch_set",
    "prune",
    "prune_staterror",
    "report",
    "smooth_353qh",
    "smooth_by_rebinning",
    "smooth_ratio",
    "split",
    "without_samples",
]
