"""The extension module: models, and procedures that take a model and a dictionary of settings.

Only `Model` and the exceptions are for everybody; the functions beside them are called by the package's own, which have names, defaults and documentation.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, TypeAlias, TypeVar, final

from numpy import float64
from numpy.typing import ArrayLike, NDArray

__version__: str

_A = TypeVar("_A")
_R = TypeVar("_R")
_Rules: TypeAlias = tuple[str, Sequence[tuple[str, str]]]
_Choice: TypeAlias = tuple[str | None, Sequence[str] | None, _Rules]
_Settings: TypeAlias = Mapping[str, Any]
_Progress: TypeAlias = Callable[[int, int], object] | None
_Fields: TypeAlias = dict[str, Any]
_Array: TypeAlias = NDArray[float64]
_Pair: TypeAlias = tuple[_Array, _Array, list[float]]
_Axis: TypeAlias = tuple[str | None, ArrayLike | None, int]

def escape(text: str, *, keep_lines: bool = False) -> str:
    """`text` with the characters escaped that would command or confuse a terminal."""

class NextstatError(ValueError):
    """What is wrong with the input; `hint` has advice, or None."""

    hint: str | None

class WorkspaceError(NextstatError):
    """A document that is not what it should be, with the place in it."""

class ModelError(NextstatError):
    """A workspace that makes no model."""

class ParameterError(NextstatError):
    """A parameter that the model does not have, or a setting that makes no sense for it."""

class DataError(NextstatError):
    """Data that do not belong to the model."""

class DeviceError(NextstatError):
    """A device that this build or this machine does not have."""

class ToyError(NextstatError):
    """Toys that cannot be thrown."""

# Toys are numbered in 48 bits.
MOST_TOYS: int
class GradientError(NextstatError):
    """A value or a gradient that is not known: a fit failed, or there is no derivative."""

_Found: TypeAlias = tuple[_Array, _Array | None, _Array | None]

@final
class RawSession:
    """A model whose chosen templates are inputs, with the fits that statistics of it need.

    Quantities are values (N × K), their slopes by the inputs (N × K × M) and by the tested value (N × K).
    """

    def __new__(
        cls, model: Model, settings: _Settings, chosen: Sequence[tuple[str, str | None, Sequence[str] | None]], asimov: str, warm_start: bool
    ) -> RawSession: ...
    @property
    def n_device_fits(self) -> int:
        """How many fits have ended in a minimum on the device."""
    @property
    def n_device_points(self) -> int:
        """At how many points the device has found -ln L and its gradients."""
    @property
    def resident_on(self) -> str | None:
        """Of which kind of PyTorch's devices tensors are read where they are; nothing if of none."""
    @property
    def n_inputs(self) -> int:
        """M, the number of inputs."""
    @property
    def values(self) -> _Array:
        """The inputs that the model has (M)."""
    def blocks(self) -> list[tuple[str, str, str, str, str | None, int, int]]:
        """Name, channel, sample, kind, parameter, start and end of every block of inputs."""
    def nll(self, params: _Array, inputs: _Array) -> tuple[float, _Array, _Array]:
        """-ln L at `params` (P) and its gradients by parameters (P) and inputs (M), which are NaN outside the domain."""
    def hessian_product(self, params: _Array, inputs: _Array, by_params: _Array, by_inputs: _Array) -> tuple[_Array, _Array]:
        """The product of the Hessian of -ln L by parameters and inputs with a direction (P and M), parameters first."""
    def profiled_nll(self, inputs: _Array, is_held: bool, mu: Sequence[float], gradient: bool) -> _Found:
        """The minimum of -ln L, with the parameter of interest free, or held at one value for each row."""
    def profiled_nll_product(
        self, inputs: _Array, is_held: bool, mu: Sequence[float], along: tuple[_Array, Sequence[float]]
    ) -> tuple[_Array, _Array]:
        """Of every row the product of the minimum's Hessian by inputs and tested value with a direction: by inputs (N × M) and by the tested value (N)."""
    def statistic_product(
        self, inputs: _Array, test_stat: str, mu: Sequence[float], along: tuple[_Array, Sequence[float]]
    ) -> tuple[_Array, _Array]:
        """The same of a statistic of the observed data."""
    def statistic(self, inputs: _Array, test_stat: str, mu: Sequence[float], is_asimov: bool, gradient: bool) -> _Found:
        """A statistic of the observed data or of the Asimov data set, at one value for each row."""
    def p_values(self, inputs: _Array, test_stat: str, mu: Sequence[float], which: str, gradient: bool) -> _Found:
        """p-values (`CLs`, `CLsb`, `CLb`), observed and expected, at one value for each row."""
    def limits(self, inputs: _Array, which: Sequence[float | None], level: float, test_stat: str, gradient: bool) -> _Found:
        """Upper limits: `None` is the observed one, a number the one expected as many standard deviations from the median."""
    def sigma(self, inputs: _Array, mu: float | None, gradient: bool) -> _Found:
        """σ(μ̂) of the observed data, or of the Asimov data set of `mu`."""

def nll_rows(session: RawSession, params: _Array, inputs: _Array) -> tuple[_Array, _Array, _Array]:
    """-ln L (N) at `params` and `inputs` (1 or N rows each), and its gradients by parameters (N × P) and inputs (N × M), which are NaN outside the domain."""

def nll_resident(
    session: RawSession, stream: int, n: int, params: tuple[int, int], inputs: tuple[int, int], room: tuple[int, int, int]
) -> None:
    """The same of tensors in the device's memory, given by their address and number of rows, written to the addresses `room`."""

def profiled_nll_resident(
    session: RawSession, stream: int, inputs: tuple[int, int], mu: Sequence[float] | None, room: tuple[int, int, int] | None
) -> tuple[list[float], list[int]]:
    """The minima of -ln L of rows in the device's memory, and the rows that are left to the host."""

def statistic_resident(
    session: RawSession, stream: int, inputs: tuple[int, int], test_stat: str, mu: Sequence[float], room: tuple[int, int, int] | None
) -> tuple[list[float], list[int]]:
    """A statistic of the observed data of rows in the device's memory, and the rows that are left to the host."""

def row_on_host(
    session: RawSession, inputs: _Array, test_stat: str | None, mu: float | None, place: tuple[int, int]
) -> tuple[float, _Array, float]:
    """What the device has left to the host of one row: the statistic, or the minimum of -ln L, and its slopes by the inputs and by `mu`."""

@final
class Model:
    """A statistical model with its observed data: immutable, shared by threads, pickled by its workspace.

    P is the number of parameters, B that of bins, K that of auxiliary data.
    """

    def __new__(
        cls,
        workspace: bytes,
        measurement: str | None = None,
        poi: Sequence[str] | None = None,
        interpolation: _Rules = ...,
    ) -> Model: ...
    @staticmethod
    def load(
        path: str,
        patches: Sequence[str],
        patchset: tuple[str, str | None] | None,
        choice: _Choice,
    ) -> Model:
        """Reads a file, applies the patch of a set and then patches, and compiles; see `load_workspace`."""

    def workspace_json(self) -> str:
        """The workspace as JSON text."""

    @property
    def measurement(self) -> str:
        """The measurement's name."""

    @property
    def channels(self) -> list[str]:
        """Names of the channels, in the order of the data."""

    @property
    def samples(self) -> list[str]:
        """Names of the samples."""

    @property
    def channel_n_bins(self) -> list[int]:
        """Number of bins of each channel."""

    @property
    def par_names(self) -> list[str]:
        """Parameter names (P), elements of vectors as `name[0]`."""

    @property
    def poi(self) -> str | None:
        """The parameter of interest."""

    @property
    def pois(self) -> list[str]:
        """All parameters of interest."""

    @property
    def poi_index(self) -> int | None:
        """The index of the parameter of interest."""

    @property
    def init(self) -> _Array:
        """Starting values (P)."""

    @property
    def bounds(self) -> _Array:
        """Ranges (P, 2)."""

    @property
    def fixed(self) -> list[bool]:
        """Whether the measurement holds each parameter (P)."""

    @property
    def n_params(self) -> int:
        """P."""

    @property
    def n_bins(self) -> int:
        """B."""

    @property
    def n_aux(self) -> int:
        """K."""

    @property
    def data(self) -> _Array:
        """Observed data: main bins (B), then auxiliary data (K)."""

    def index(self, name: str) -> int:
        """The index of the parameter `name`."""

    def parameter_sets(self) -> list[dict[str, Any]]:
        """What the sets of parameters are, in order: name, kinds of modifiers, start, len, constraint, scales, aux_indices."""

    def nll(self, params: ArrayLike, data: ArrayLike | None = None, *, threads: int | None = None) -> Any:
        """-ln L at `params`, one point (P) or many (N, P), of the observed data, of `data`, or of one row of `data` for each point.

        A point is a number, many are an array (N); +inf where the model expects what cannot be.
        """

    def nll_and_grad(self, params: ArrayLike, data: ArrayLike | None = None, *, threads: int | None = None) -> tuple[Any, _Array]:
        """The same with the gradient (P) or (N, P), which is NaN where -ln L is not finite."""

    def expected_data(self, params: ArrayLike, *, aux: bool = True) -> _Array:
        """Expected data at `params`, one point (P) or many (N, P): main bins (B), and auxiliary data (K) if `aux`."""

    def diagnose(self, params: ArrayLike, data: ArrayLike | None = None) -> str | None:
        """Why -ln L is not finite at `params` (P), of the observed data or of `data`; None where it is."""

    def _repr_html_(self) -> str: ...
    def _check(self) -> _Fields: ...
    def _inspect(self) -> _Fields: ...

@final
class RawFit:
    """What follows from a fit, computed when it is looked at."""

    def covariance(self) -> _Array | None: ...
    def pulls(self) -> list[_Fields]: ...
    def mle_parameters(self) -> dict[str, list[float]]: ...
    def warnings(self) -> list[str]: ...

@final
class FloatingModel:
    """A model with all parameters free, for callers who say at each call what is held."""

    def __new__(cls, model: Model) -> FloatingModel: ...
    def by_sample(self, points: ArrayLike) -> _Array: ...
    def log_density(self, points: ArrayLike, data: ArrayLike) -> _Array: ...
    def log_terms(self, points: ArrayLike, data: ArrayLike) -> tuple[_Array, _Array]: ...
    def nll_and_grad(self, params: ArrayLike, values: ArrayLike) -> tuple[float, _Array]: ...
    def hessian(self, params: ArrayLike, values: ArrayLike) -> _Array: ...
    def fit(self, values: ArrayLike, within: Any, errors: bool, minos: Sequence[int]) -> _Fields: ...
    def fits_of_test(
        self, values: ArrayLike, within: Any, tested: tuple[int, float, float], most: int
    ) -> tuple[_Pair, _Array, _Pair] | None: ...
    def fit_each(self, values: ArrayLike, within: Any, progress: Callable[[int, int], object] | None) -> _Fields: ...

@final
class RawPatchSet:
    """A set of patches; see `PatchSet`."""

    def __new__(cls, text: bytes) -> RawPatchSet: ...
    def inspect(self) -> _Fields: ...
    def patch(self, name: str) -> str: ...
    def verify(self, workspace: bytes) -> _Fields: ...
    def grid(self, workspace: bytes) -> RawGrid: ...
    def apply(self, workspace: bytes, name: str) -> str: ...

@final
class RawGrid:
    """A background-only workspace with a set of patches for it."""

    def model(self, name: str, choice: _Choice) -> Model: ...

@final
class Stopper:
    """Ends what other threads compute: their calls raise `KeyboardInterrupt`."""

    def __new__(cls) -> Stopper: ...
    def stop(self) -> None:
        """Stops what runs under it, and all that will."""

    def call(self, function: Callable[[_A], _R], argument: _A) -> _R:
        """What `function` makes of `argument`, under this stopper."""

def count(name: str, value: object, at_least: int) -> int:
    """`value` as a whole number of at least `at_least`, called `name`."""

def count_of_toys(name: str, value: object) -> int:
    """`value` as a number of toys, called `name`, within the limits of the command."""

def number(value: object, what: str) -> float:
    """`value` as a number of Python's; `what` says whose it is."""

def command(arguments: Sequence[str | PathLike[str]]) -> int:
    """Runs the command with `arguments`, the first of which is its own name; returns the exit code."""

def devices() -> list[str]:
    """Names of the backends that have a device here."""

def digest_of(text: bytes, algorithm: str) -> str: ...
def read_document(path: str) -> bytes: ...
def inspect_workspace(text: bytes, measurement: str | None) -> _Fields: ...
def apply_patch(text: bytes, operations: bytes) -> str: ...
def interpolate(code: str, low: ArrayLike, high: ArrayLike, alpha: ArrayLike) -> _Array: ...
def fit_model(model: Model, settings: _Settings, errors: bool, minos: Sequence[str]) -> _Fields: ...
def hypotest_model(model: Model, settings: _Settings, mu: float, test_stat: str) -> _Fields: ...
def significance_model(model: Model, settings: _Settings, mu: float) -> _Fields: ...
def limit_model(model: Model, settings: _Settings, level: float, test_stat: str, grid: ArrayLike | None) -> _Fields: ...
def scan_model(model: Model, settings: _Settings, axes: Sequence[_Axis], progress: _Progress, parts: Sequence[Any] = ...) -> _Fields: ...
def grid_part_model(model: Model, settings: _Settings, axes: Sequence[_Axis], part: Sequence[int]) -> Any: ...
def contours_model(model: Model, settings: _Settings, parameters: tuple[str, str], levels: Sequence[float], n_points: int, progress: _Progress) -> _Fields: ...
def ranking_model(
    model: Model,
    settings: _Settings,
    methods: Sequence[str],
    groups: Sequence[tuple[str, Sequence[str]]],
    minos: bool,
    progress: _Progress,
    parts: Sequence[Any] = ...,
) -> _Fields: ...
def ranking_part(
    model: Model,
    settings: _Settings,
    methods: Sequence[str],
    groups: Sequence[tuple[str, Sequence[str]]],
    minos: bool,
    part: Sequence[int],
) -> Any: ...
def throw_toys(model: Model, settings: _Settings, params: ArrayLike, range: tuple[int, int], is_aux_fixed: bool) -> _Array: ...
def fit_toys_model(model: Model, settings: _Settings, params: ArrayLike, wanted: _Settings, progress: _Progress) -> _Fields: ...
def hypotest_toys_model(model: Model, settings: _Settings, wanted: _Settings, progress: _Progress) -> Any: ...
def hypotest_of_units(model: Model, settings: _Settings, wanted: _Settings, values: ArrayLike) -> _Fields | None: ...
def goodness_model(model: Model, settings: _Settings, n_toys: int, is_aux_fixed: bool, progress: _Progress) -> _Fields: ...
def yields_model(model: Model, settings: _Settings) -> _Fields: ...
def report_model(model: Model, settings: _Settings) -> _Fields: ...
