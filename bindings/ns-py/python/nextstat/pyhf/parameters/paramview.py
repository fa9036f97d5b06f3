"""Selected parameter sets in a parameter vector, or in a batch of them."""

import numpy as np

from ..tensor.common import _tensorviewer_from_sizes, _tensorviewer_from_slices

__all__ = ["ParamViewer"]


def __dir__():
    return __all__


class ParamViewer:
    """The positions of the parameter sets `par_selection` in vectors of `shape`, (P,) or (batch,
    P).
    """

    def __init__(self, shape, par_map, par_selection):
        batch_size = shape[0] if len(shape) > 1 else None
        self.all_indices = np.arange(int(np.prod(shape))).reshape(shape)
        in_order = sorted(par_map.items(), key=lambda item: item[1]["slice"].start)
        self.allpar_viewer = _tensorviewer_from_slices([entry["slice"] for _, entry in in_order], [name for name, _ in in_order], batch_size)
        sizes = [par_map[name]["slice"].stop - par_map[name]["slice"].start for name in par_selection]
        self.selected_viewer = _tensorviewer_from_sizes(sizes, par_selection, batch_size)
        self.index_selection, self.stitched, self.indices_concatenated = [], None, None
        if self.selected_viewer:
            self.index_selection = self.allpar_viewer.split(self.all_indices, selection=self.selected_viewer.names)
            self.stitched = self.selected_viewer.stitch(self.index_selection)
            self.indices_concatenated = self.stitched.T if self.stitched.ndim > 1 else self.stitched

    def get(self, data, indices=None):
        """Returns the selected values of `data`: (n,), or (n, batch)."""
        if not self.index_selection:
            return None
        return np.reshape(data, -1)[self.indices_concatenated if indices is None else indices]
