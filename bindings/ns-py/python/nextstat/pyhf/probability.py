"""Probability distributions: logarithm, expectation and samples.

Samples come from NumPy's global generator, so that ``numpy.random.seed`` makes them repeatable.
"""

import numpy as np

from ._current import get_backend

__all__ = ["Independent", "Normal", "Poisson", "Simultaneous"]


def __dir__():
    return __all__


class _Distribution:
    """One backend distribution, `_pdf`."""

    def log_prob(self, value):
        """Returns ln f(value), element by element."""
        return self._pdf.log_prob(value)

    def expected_data(self):
        """Returns the expectation value."""
        return self._pdf.expected_data()

    def sample(self, sample_shape=()):
        """Returns values drawn at random, of shape `sample_shape` and then the distribution's
        own."""
        return self._pdf.sample(sample_shape)


class Poisson(_Distribution):
    """Counts with expectation `rate`."""

    def __init__(self, rate):
        self.rate = rate
        self._pdf = get_backend()[0].poisson_dist(rate)

    def expected_data(self):
        """Returns the rate.

        >>> import nextstat.pyhf as pyhf
        >>> pyhf.probability.Poisson(pyhf.tensorlib.astensor([5, 8])).expected_data()
        array([5., 8.])
        """
        return self.rate


class Normal(_Distribution):
    """Normally distributed values with mean `loc` and standard deviation `scale`."""

    def __init__(self, loc, scale):
        self.loc = loc
        self.scale = scale
        self._pdf = get_backend()[0].normal_dist(loc, scale)

    def expected_data(self):
        """Returns the mean."""
        return self.loc


class Independent(_Distribution):
    """Independent values, the last axis of `batched_pdf`: the logarithms add up."""

    def __init__(self, batched_pdf, batch_size=None):
        self.batch_size = batch_size
        self._pdf = batched_pdf

    def log_prob(self, value):
        """Returns ln f of all values together."""
        return np.sum(super().log_prob(value), axis=-1)


class Simultaneous:
    """Several distributions of parts of the data, the parts that `tensorview` says."""

    def __init__(self, pdfobjs, tensorview, batch_size=None):
        self.tv = tensorview
        self._pdfobjs = pdfobjs
        self.batch_size = batch_size

    def __iter__(self):
        return iter(self._pdfobjs)

    def __getitem__(self, index):
        return self._pdfobjs[index]

    def expected_data(self):
        """Returns the expectation values of all parts, in the order of the data."""
        return self.tv.stitch([pdf.expected_data() for pdf in self])

    def sample(self, sample_shape=()):
        """Returns random values of all parts, in the order of the data."""
        return self.tv.stitch([pdf.sample(sample_shape) for pdf in self])

    def log_prob(self, value):
        """Returns ln f of all parts together."""
        return self._joint_logpdf([pdf.log_prob(part) for pdf, part in zip(self, self.tv.split(value))], self.batch_size)

    @staticmethod
    def _joint_logpdf(terms, batch_size=None):
        return terms[0] if len(terms) == 1 else np.sum(np.stack(terms), axis=0)
