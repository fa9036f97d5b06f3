"""The NumPy backend: pyhf's tensor operations, each NumPy's own."""

import logging

import numpy as np

from . import _special

log = logging.getLogger(__name__.removeprefix("nextstat."))


class _BasicPoisson:
    def __init__(self, rate):
        self.rate = rate

    def sample(self, sample_shape):
        return np.random.poisson(self.rate, size=tuple(sample_shape) + np.shape(self.rate))

    def log_prob(self, value):
        return numpy_backend().poisson_logpdf(value, self.rate)


class _BasicNormal:
    def __init__(self, loc, scale):
        self.loc = loc
        self.scale = scale

    def sample(self, sample_shape):
        return np.random.normal(self.loc, self.scale, size=tuple(sample_shape) + np.shape(self.loc))

    def log_prob(self, value):
        return numpy_backend().normal_logpdf(value, self.loc, self.scale)


class numpy_backend:
    """Tensor operations by NumPy."""

    __slots__ = ["name", "precision", "dtypemap", "default_do_grad"]

    #: The type of arrays.
    array_type = np.ndarray
    #: The type of their elements.
    array_subtype = np.number

    def __init__(self, **kwargs):
        self.name = "numpy"
        self.precision = kwargs.get("precision", "64b")
        wide = self.precision == "64b"
        self.dtypemap = {
            "float": np.float64 if wide else np.float32,
            "int": np.int64 if wide else np.int32,
            "bool": np.bool_,
        }
        self.default_do_grad = False

    def _setup(self):
        """Does nothing: nothing is global."""

    def _dtype(self, dtype):
        try:
            return self.dtypemap[dtype]
        except KeyError:
            log.error("Invalid dtype: dtype must be float, int, or bool.", exc_info=True)
            raise

    def astensor(self, tensor_in, dtype="float"):
        """Returns `tensor_in` as an array of floats, or of ``"int"`` or ``"bool"``."""
        return np.asarray(tensor_in, dtype=self._dtype(dtype))

    def ones(self, shape, dtype="float"):
        return np.ones(shape, dtype=self._dtype(dtype))

    def zeros(self, shape, dtype="float"):
        return np.zeros(shape, dtype=self._dtype(dtype))

    def tolist(self, tensor_in):
        """Returns `tensor_in` as numbers, or as lists of them; the arrays in a list or a tuple,
        too."""
        if hasattr(tensor_in, "tolist"):
            return tensor_in.tolist()
        if isinstance(tensor_in, (list, tuple)):
            return [self.tolist(item) if isinstance(item, (list, tuple)) or hasattr(item, "tolist") else item for item in tensor_in]
        raise AttributeError(f"`{type(tensor_in).__name__}` has no `tolist`")

    def to_numpy(self, tensor_in):
        return tensor_in

    def clip(self, tensor_in, min_value, max_value):
        return np.clip(tensor_in, min_value, max_value)

    def erf(self, tensor_in):
        return _special.erf(tensor_in)

    def erfinv(self, tensor_in):
        return _special.erfinv(tensor_in)

    def tile(self, tensor_in, repeats):
        return np.tile(tensor_in, repeats)

    def conditional(self, predicate, true_callable, false_callable):
        return true_callable() if predicate else false_callable()

    def outer(self, tensor_in_1, tensor_in_2):
        return np.outer(tensor_in_1, tensor_in_2)

    def gather(self, tensor, indices):
        return tensor[indices]

    def boolean_mask(self, tensor, mask):
        return tensor[mask]

    def isfinite(self, tensor):
        return np.isfinite(tensor)

    def sum(self, tensor_in, axis=None):
        return np.sum(tensor_in, axis=axis)

    def product(self, tensor_in, axis=None):
        return np.prod(tensor_in, axis=axis)

    def abs(self, tensor):
        return np.abs(tensor)

    def power(self, tensor_in_1, tensor_in_2):
        return np.power(tensor_in_1, tensor_in_2)

    def sqrt(self, tensor_in):
        return np.sqrt(tensor_in)

    def divide(self, tensor_in_1, tensor_in_2):
        return np.divide(tensor_in_1, tensor_in_2)

    def log(self, tensor_in):
        return np.log(tensor_in)

    def exp(self, tensor_in):
        return np.exp(tensor_in)

    def percentile(self, tensor_in, q, axis=None, interpolation="linear"):
        # NumPy 2.4 dropped the keyword `interpolation`.
        return np.percentile(tensor_in, q, axis=axis, method=interpolation)

    def stack(self, sequence, axis=0):
        return np.stack(sequence, axis=axis)

    def where(self, mask, tensor_in_1, tensor_in_2):
        return np.where(mask, tensor_in_1, tensor_in_2)

    def concatenate(self, sequence, axis=0):
        return np.concatenate(sequence, axis=axis)

    def simple_broadcast(self, *args):
        return list(np.broadcast_arrays(*args))

    def shape(self, tensor):
        return tensor.shape

    def reshape(self, tensor, newshape):
        return np.reshape(tensor, newshape)

    def ravel(self, tensor):
        return np.ravel(tensor)

    def einsum(self, subscripts, *operands):
        return np.einsum(subscripts, *operands)

    def transpose(self, tensor_in):
        return tensor_in.transpose()

    def poisson_logpdf(self, n, lam):
        """Returns ln Pois(n | λ), continuous in n."""
        return _special.x_log_y(n, lam) - lam - _special.log_gamma(np.asarray(n, dtype=float) + 1.0)

    def poisson(self, n, lam):
        """Returns Pois(n | λ), continuous in n.

        >>> import nextstat.pyhf as pyhf
        >>> round(float(pyhf.tensorlib.poisson(5.0, 6.0)), 8)
        0.16062314
        """
        return np.exp(self.poisson_logpdf(np.asarray(n), np.asarray(lam)))

    def normal_logpdf(self, x, mu, sigma):
        pull = (np.asarray(x, dtype=float) - mu) / sigma
        return -0.5 * pull * pull - np.log(np.sqrt(2.0 * np.pi) * np.asarray(sigma))

    def normal(self, x, mu, sigma):
        return np.exp(self.normal_logpdf(x, mu, sigma))

    def normal_cdf(self, x, mu=0, sigma=1):
        return _special.normal_cdf((np.asarray(x, dtype=float) - mu) / sigma)

    def poisson_dist(self, rate):
        return _BasicPoisson(rate)

    def normal_dist(self, mu, sigma):
        return _BasicNormal(mu, sigma)


class nextstat_backend(numpy_backend):
    """The NumPy backend with gradients: `pyhf.optimize.common.shim` offers those that the engine
    computes, which are exact.
    """

    __slots__ = []

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.name = "nextstat"
        self.default_do_grad = True
