"""Splitting vectors into named parts, and putting parts together again."""

import numpy as np


class _TensorViewer:
    """Parts of a vector, each by its positions.

    `split` takes the parts out along the last axis; `stitch` puts them back.
    """

    def __init__(self, indices, batch_size=None, names=None):
        self.batch_size = batch_size
        self.names = names
        self.partition_indices = [np.asarray(part, dtype=int) for part in indices]
        self.sorted_indices = np.concatenate(self.partition_indices).argsort()
        if names:
            self.name_map = dict(zip(names, self.partition_indices))

    def stitch(self, data):
        if len(data) != len(self.partition_indices):
            raise AssertionError(f"{len(data)} parts of {len(self.partition_indices)}")
        return np.concatenate(data, axis=-1)[..., self.sorted_indices]

    def split(self, data, selection=None):
        parts = self.partition_indices if selection is None else [self.name_map[name] for name in selection]
        return [np.asarray(data)[..., part] for part in parts]


def _tensorviewer_from_slices(target_slices, names, batch_size):
    if not target_slices:
        return None
    return _TensorViewer([range(part.start, part.stop) for part in target_slices], names=names, batch_size=batch_size)


def _tensorviewer_from_sizes(sizes, names, batch_size):
    ends = np.cumsum(sizes).tolist() if len(sizes) else []
    return _tensorviewer_from_slices([slice(end - size, end) for size, end in zip(sizes, ends)], names, batch_size)
