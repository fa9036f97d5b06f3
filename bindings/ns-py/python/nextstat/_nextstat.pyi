"""The extension module: models, and procedures that take a model and a dictionary of settings.

Users need `Model` and the exceptions; the package's own functions, which have names, defaults and
documentation, call the others.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar, final

from numpy import float64, uint8, uint32, uint64
from numpy.typing import ArrayLike, NDArray

__version__: str

_A = TypeVar("_A")
_R = TypeVar("_R")
_Choice: TypeAlias = Mapping[str, Any]
_Settings: TypeAlias = Mapping[str, Any]
_Progress: TypeAlias = Callable[[int, int], object] | None
_Fields: TypeAlias = dict[str, Any]
_Array: TypeAlias = NDArray[float64]
_Wanted: TypeAlias = Mapping[str, Any]
_Vector: TypeAlias = Mapping[str, _Array]
# All parameters of a model, or values by name.
_Params: TypeAlias = ArrayLike | Mapping[str, float]
# The JSON text of a stored fit, and the name of its file if it was read from one.
_FitText: TypeAlias = tuple[str, str | None]

def escape(text: str, *, keep_lines: bool = False) -> str:
    """Returns `text` with control, bidirectional and invisible characters escaped."""

class NextstatError(ValueError):
    """A problem with the input; `hint` has advice, or None."""

    hint: str | None

class WorkspaceError(NextstatError):
    """A document that is not valid, with the place of the problem."""

class ModelError(NextstatError):
    """A workspace that is not a valid model."""

class ParameterError(NextstatError):
    """A parameter that the model does not have, or a setting that is not valid for it."""

class DataError(NextstatError):
    """Data that do not belong to the model."""

class DeviceError(NextstatError):
    """A device that this build or this machine does not have, or that failed."""

class ToyError(NextstatError):
    """Toys that cannot be thrown."""

# Toys are numbered in 48 bits.
MOST_TOYS: int

# The warning about toys with fixed auxiliary data.
FIXED_AUX: str

# Names of the accelerator backends that there are, in any build.
SCHEMAS: tuple[str, ...]
BACKENDS: tuple[str, ...]

class GradientError(NextstatError):
    """A value or a gradient that is not available: a fit failed, or there is no derivative."""

_Found: TypeAlias = tuple[_Array, _Array | None, _Array | None]

def require_sound_fit(document: bytes) -> None:
    """Refuses the JSON text of a fit that is damaged, or whose numbers were changed."""

@final
class RawTable:
    """A table of the result in a JSON text."""

    def __new__(
        cls,
        document: bytes,
        table: str | None,
        rows: Sequence[str],
        caption: str | None,
        label: str | None,
    ) -> RawTable: ...
    @property
    def name(self) -> str:
        """The name of the table."""
    @property
    def alarm(self) -> str | None:
        """What a reader must know of the numbers; None if they can be used without."""
    def text(self, format: str) -> str:
        """Returns the table as `latex`, `csv` or `md`."""
    def columns(self) -> list[tuple[str, list[str | float | None]]]:
        """Returns name and values of each column, with a column for each number."""

@final
class RawSession:
    """A model whose chosen templates are inputs, with the fits that its statistics need.

    Quantities are values (N × K), with gradients by the inputs (N × K × M) and by the tested value
    (N × K).
    """

    def __new__(cls, model: Model, settings: _Settings, wanted: _Wanted) -> RawSession: ...
    @property
    def n_device_fits(self) -> int:
        """The number of fits that ended in a minimum on the device."""
    @property
    def n_device_points(self) -> int:
        """The number of points at which the device computed -ln L and its gradients."""
    @property
    def resident_on(self) -> str | None:
        """The kind of PyTorch's devices whose tensors are read in their memory, if any."""
    @property
    def n_inputs(self) -> int:
        """M, the number of inputs."""
    @property
    def values(self) -> _Array:
        """The inputs that the model has (M)."""
    def blocks(self) -> list[_Fields]:
        """Returns name, channel, sample, kind, parameter, start and stop of every block."""
    def nll(self, params: _Array, inputs: _Array) -> tuple[float, _Array, _Array]:
        """Returns -ln L at `params` (P) and its gradients by parameters (P) and inputs (M)."""
    def hessian_product(self, at: _Vector, along: _Vector) -> tuple[_Array, _Array]:
        """Returns the Hessian of -ln L by parameters and inputs, times a direction."""
    def profiled_nll(
        self, inputs: _Array, is_fixed: bool, mu: Sequence[float], gradient: bool
    ) -> _Found:
        """Returns the minimum of -ln L, with the parameter of interest free or fixed."""
    def profiled_nll_product(
        self, inputs: _Array, is_fixed: bool, mu: Sequence[float], along: _Wanted
    ) -> tuple[_Array, _Array]:
        """Returns the minimum's Hessian by inputs and tested value, times directions."""
    def statistic_product(
        self, inputs: _Array, test_stat: str, mu: Sequence[float], along: _Wanted
    ) -> tuple[_Array, _Array]:
        """Returns a statistic's Hessian by inputs and tested value, times directions."""
    def statistic(
        self, inputs: _Array, test_stat: str, mu: Sequence[float], is_asimov: bool, gradient: bool
    ) -> _Found:
        """Returns a statistic of the observed data or of the Asimov data set."""
    def p_values(
        self, inputs: _Array, test_stat: str, mu: Sequence[float], which: str, gradient: bool
    ) -> _Found:
        """Returns p-values (`CLs`, `CLsb`, `CLb`), observed and expected."""
    def limits(
        self,
        inputs: _Array,
        which: Sequence[float | None],
        level: float,
        test_stat: str,
        gradient: bool,
    ) -> _Found:
        """Returns upper limits: None is the observed one, a number an expected one."""
    def sigma(self, inputs: _Array, mu: float | None, gradient: bool) -> _Found:
        """Returns σ(μ̂) of the observed data, or of the Asimov data set of `mu`."""

def nll_batch(
    session: RawSession, params: _Array, inputs: _Array
) -> tuple[_Array, _Array, _Array]:
    """Returns -ln L (N) and its gradients at `params` and `inputs` (1 or N rows each)."""

def nll_resident(session: RawSession, wanted: _Wanted) -> None:
    """Evaluates -ln L and its gradients at tensors in the device's memory."""

def profiled_nll_resident(session: RawSession, wanted: _Wanted) -> _Fields:
    """Finds the minima of -ln L of a batch in the device's memory."""

def statistic_resident(session: RawSession, wanted: _Wanted) -> _Fields:
    """Computes a statistic of the observed data of a batch in the device's memory."""

def element_on_host(
    session: RawSession, inputs: _Array, wanted: _Wanted
) -> tuple[float, _Array, float]:
    """Computes on the host an element of a batch that the device has left."""

@final
class Model:
    """A statistical model with its observed data: immutable, shared by threads.

    P is the number of parameters, B that of bins, K that of auxiliary data.
    """

    def __new__(
        cls,
        workspace: bytes,
        choice: _Choice | None = None,
    ) -> Model: ...
    @staticmethod
    def load(files: _Wanted, choice: _Choice) -> Model:
        """Reads files and compiles the model; see `load_workspace`."""

    def workspace_json(self) -> str:
        """Returns the workspace as JSON text."""

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
        """Whether the measurement fixes each parameter (P)."""

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

    def with_poi(self, name: str) -> Model:
        """Returns the same model with the parameter `name` as its only one of interest."""

    def index(self, name: str) -> int:
        """Returns the index of the parameter `name`."""

    def parameter_sets(self) -> list[dict[str, Any]]:
        """Returns what is known of each set of parameters, in order.

        Name, kinds of modifiers, start, len, constraint, scales, widths, aux_indices.
        """

    def nll(self, params: _Params, data: ArrayLike | None = None, *, threads: int | None = None) -> Any:
        """Returns -ln L at `params`, one point (P) or many (N, P).

        Of the observed data, of `data`, or of one row of `data` for each point. One point gives a
        number, many give an array (N); +inf outside the domain of the model.
        """

    def nll_and_grad(self, params: _Params, data: ArrayLike | None = None, *, threads: int | None = None) -> tuple[Any, _Array]:
        """Returns -ln L and its gradient (P) or (N, P), which is NaN where -ln L is not finite."""

    def expected_data(self, params: _Params, *, aux: bool = True) -> _Array:
        """Returns expected data at `params`, one point (P) or many (N, P).

        They are those of the main bins (B), and auxiliary data (K) if `aux`.
        """

    def diagnose(self, params: _Params, data: ArrayLike | None = None) -> str | None:
        """Returns why -ln L is not finite at `params` (P); None where it is finite."""

    def _repr_html_(self) -> str: ...
    def _inspect(self) -> _Fields: ...

@final
class RawFit:
    """What follows from a fit, computed when it is read."""

    def covariance(self) -> _Array | None: ...
    def pulls(self) -> list[_Fields]: ...
    def mle_parameters(self) -> dict[str, list[float]]: ...
    def warnings(self) -> list[str]: ...

@final
class RawProvenance:
    """How a result was computed, read when it is asked for."""

    def read(self) -> _Fields: ...
    def about(self) -> tuple[list[str], str, str]: ...
    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[_Fields]]: ...

@final
class RawAsimov:
    """The point of an Asimov data set; pickled as what it was made of."""

    def __new__(
        cls, parameters: list[tuple[str, float]], fit: _FitText | None = None
    ) -> RawAsimov: ...
    @staticmethod
    def at(model: Model, params: _Params | None, fit: _FitText | None = None) -> RawAsimov: ...
    def data(self, model: Model) -> _Array: ...
    def warnings(self, model: Model) -> list[str]: ...
    def __reduce__(
        self,
    ) -> tuple[type[RawAsimov], tuple[list[tuple[str, float]], _FitText | None]]: ...

@final
class FloatingModel:
    """A model with all parameters free, for callers that say at each call which are fixed."""

    def __new__(cls, model: Model) -> FloatingModel: ...
    def by_sample(self, points: ArrayLike) -> _Array: ...
    def log_density(self, points: ArrayLike, data: ArrayLike) -> _Array: ...
    def log_terms(self, points: ArrayLike, data: ArrayLike) -> tuple[_Array, _Array]: ...
    def nll_and_grad(self, params: ArrayLike, values: ArrayLike) -> tuple[float, _Array]: ...
    def hessian(self, params: ArrayLike, values: ArrayLike) -> _Array: ...
    def fit(
        self, values: ArrayLike, within: _Wanted, errors: bool, minos: Sequence[int]
    ) -> _Fields: ...
    def fits_of_test(
        self, values: ArrayLike, within: _Wanted, wanted: _Wanted
    ) -> _Fields | None: ...
    def fit_each(self, values: ArrayLike, within: _Wanted, progress: _Progress) -> _Fields: ...

@final
class RawPatchSet:
    """A set of patches; see `PatchSet`."""

    def __new__(cls, text: bytes) -> RawPatchSet: ...
    def inspect(self) -> _Fields: ...
    def patch(self, name: str) -> str: ...
    def verify(self, workspace: bytes) -> _Fields: ...
    def require(self, workspace: bytes) -> None: ...
    def grid(
        self, workspace: bytes, files: Sequence[str | None] = (None, None)
    ) -> RawGrid: ...
    def apply(self, workspace: bytes, name: str) -> str: ...

@final
class RawGrid:
    """A background-only workspace with a set of patches for it."""

    def model(self, name: str, choice: _Choice) -> Model: ...
    def head(self, name: str) -> _Fields: ...
    def provenance(self, of_patch: RawProvenance | None) -> RawGridProvenance: ...
    def search(
        self, choice: _Choice, settings: _Settings, wanted: _Wanted, progress: _Progress
    ) -> _Fields: ...
    def simplify(
        self, choice: _Choice, settings: _Settings, wanted: _Wanted, progress: _Progress
    ) -> tuple[_Fields, _Fields]: ...

def simplify_model(model: Model, settings: _Settings, wanted: _Wanted) -> tuple[_Fields, _Fields]: ...

def read_named_tables(path: str) -> list[tuple[str, Any]]: ...

class RawScanner:
    """A background that signals are tested with."""

    def __init__(self, workspace: bytes | str, choice: _Choice, settings: _Settings, slot: _Wanted) -> None: ...
    def channels(self) -> list[tuple[str, int]]: ...
    def scan(
        self,
        yields: list[tuple[str, Any]],
        uncertainties: list[tuple[str, Any]],
        wanted: _Wanted,
        progress: _Progress,
    ) -> _Fields: ...

class RawGridProvenance:
    """How the results of a grid were computed, read when it is asked for."""

    def read(self) -> _Fields: ...

@final
class Stopper:
    """Ends what other threads compute: their calls raise `KeyboardInterrupt`."""

    def __new__(cls) -> Stopper: ...
    def stop(self) -> None:
        """Stops what runs under the stopper, now and later."""

    def call(self, function: Callable[[_A], _R], argument: _A) -> _R:
        """Calls `function` with `argument`, under this stopper."""

def count(name: str, value: object, at_least: int) -> int:
    """Returns `value` as a whole number of at least `at_least`; `name` is for messages."""

def count_of_toys(name: str, value: object) -> int:
    """Returns `value` as a number of toys within the limits of the command."""

def number(value: object, what: str) -> float:
    """Returns `value` as a Python number; `what` names it in messages."""

def command(arguments: Sequence[str | PathLike[str]]) -> int:
    """Runs the command with `arguments`, the first of which is its own name; returns the exit code.
    """

def devices() -> list[str]:
    """Returns the names of the backends that have a device here."""

def json_schema(name: str) -> str:
    """Returns the JSON schema called `name`, as text."""

def check_model(model: Model, settings: _Settings) -> _Fields: ...
def schema_urn(name: str) -> str:
    """Returns the identifier of the JSON schema called `name`."""

def digest_of(text: bytes, algorithm: str) -> str: ...
def convert_document(
    path: str | None, text: bytes | None, format: str, measurement: str | None, card: _Wanted
) -> tuple[str, list[str]]: ...
def write_xml(
    path: str | None, text: bytes | None, target: str, measurement: str | None, card: _Wanted
) -> list[str]: ...
def xml_for_pyhf(
    text: bytes, folders: Sequence[str], prefix: str
) -> tuple[str, list[tuple[Path, bytes]], list[str]]: ...
def combine(
    workspaces: Sequence[tuple[str | None, bytes | str]],
    map: bytes | str | None,
    join: str | None,
    merge_channels: bool,
    card: _Wanted,
) -> tuple[str, _Fields]:
    """Returns the workspace as JSON text, and the report."""

def decorrelate(
    workspace: bytes | str, wanted: _Wanted, card: _Wanted
) -> tuple[str, _Fields]:
    """Returns the workspace as JSON text, and the report."""

def read_document(path: str) -> bytes: ...
def failed_patches(n_failed: int, n_done: int) -> str | None: ...
def exclusion_of(
    grid: bytes,
    axes: Sequence[str | None],
    at: Sequence[tuple[str, str]],
    cl: float | None,
    mass_splitting: bool,
    file: str | None,
) -> _Fields:
    """Returns the exclusion contours of the results of every patch, in their JSON text."""

def inspect_workspace(text: bytes, measurement: str | None) -> _Fields: ...
def apply_patch(text: bytes, operations: bytes) -> str: ...
def interpolate(code: str, low: ArrayLike, high: ArrayLike, alpha: ArrayLike) -> _Array: ...
def fit_model(model: Model, settings: _Settings, wanted: _Wanted) -> _Fields: ...
def hypotest_model(model: Model, settings: _Settings, mu: float | None, test_stat: str) -> _Fields: ...
def significance_model(model: Model, settings: _Settings, mu: float) -> _Fields: ...
def limit_model(model: Model, settings: _Settings, wanted: _Wanted) -> _Fields: ...
def limit_scan_model(
    model: Model,
    settings: _Settings,
    wanted: _Wanted,
    at: _Wanted,
    progress: _Progress,
) -> _Fields: ...
def scan_model(
    model: Model,
    settings: _Settings,
    axes: Sequence[_Wanted],
    progress: _Progress,
    parts: Sequence[Any] = ...,
) -> _Fields: ...
def grid_part_model(
    model: Model, settings: _Settings, axes: Sequence[_Wanted], part: Sequence[int]
) -> Any: ...
def contours_model(
    model: Model, settings: _Settings, wanted: _Wanted, progress: _Progress
) -> _Fields: ...
def ranking_model(
    model: Model,
    settings: _Settings,
    wanted: _Wanted,
    progress: _Progress,
    parts: Sequence[Any] = ...,
) -> _Fields: ...
def ranking_part(
    model: Model, settings: _Settings, wanted: _Wanted, part: Sequence[int]
) -> Any: ...
def throw_toys(
    model: Model, settings: _Settings, params: _Params, wanted: _Wanted
) -> _Array: ...
def throwing_point(model: Model, settings: _Settings) -> _Array: ...
def fit_toys_model(
    model: Model,
    settings: _Settings,
    params: _Params | None,
    wanted: _Wanted,
    progress: _Progress,
) -> _Fields: ...
def mean_and_standard_deviation(values: Any) -> tuple[float, float] | None:
    """Returns the mean and the standard deviation of `values`; None for fewer than two."""

def toys_warnings(n_toys: int, n_failed: int, is_aux_fixed: bool) -> list[str]: ...
def hypotest_toys_model(
    model: Model, settings: _Settings, wanted: _Wanted, progress: _Progress
) -> Any: ...
def hypotest_of_units(
    model: Model, settings: _Settings, wanted: _Wanted, values: ArrayLike
) -> _Fields | None: ...
def fits_model(
    model: Model,
    settings: _Settings,
    data: ArrayLike | Mapping[str, ArrayLike],
    has_uncertainties: bool,
    progress: _Progress,
) -> _Fields: ...
def load_fits(paths: list[str]) -> _Fields: ...
def bootstrap_histograms(
    events: _Wanted, wanted: _Wanted, n_threads: int | None, progress: _Progress
) -> _Array: ...
def bootstrap_weights(
    events: NDArray[uint64], runs: NDArray[uint32], wanted: _Wanted
) -> NDArray[uint8]: ...
def replica_covariance_of(a: _Wanted, b: _Wanted) -> _Fields: ...
def interval_model(
    model: Model, settings: _Settings, wanted: _Wanted, progress: _Progress
) -> _Fields: ...
def region_model(
    model: Model, settings: _Settings, wanted: _Wanted, progress: _Progress
) -> _Fields: ...
def limit_toys_model(
    model: Model, settings: _Settings, wanted: _Wanted, progress: _Progress
) -> _Fields: ...
def coverage_model(
    model: Model, settings: _Settings, wanted: _Wanted, progress: _Progress
) -> _Fields: ...
def significance_toys_model(
    model: Model, settings: _Settings, wanted: _Wanted, progress: _Progress
) -> _Fields: ...
def goodness_model(
    model: Model, settings: _Settings, wanted: _Wanted, progress: _Progress
) -> _Fields: ...
def yields_model(model: Model, settings: _Settings, fit: _FitText | None = None) -> _Fields: ...
def hidden_bins(wanted: _Wanted) -> list[bool]: ...
def poisson_intervals(counts: Sequence[float]) -> list[list[float]]: ...
def report_model(
    model: Model, settings: _Settings, fit: _FitText | None = None, page: _Wanted | None = None
) -> _Fields:
    """Computes a report; with `page`, the result has the page under this key."""

def require_page(path: str | PathLike[str]) -> None: ...
def fit_checksums(document: _Wanted) -> dict[str, str]: ...
def compare_model(model: Model, settings: _Settings, fit: _FitText) -> _Fields: ...
def significant(value: float | None, digits: int) -> str: ...
def measured(value: float, uncertainty: float | None) -> str: ...
def fitted(found: dict[str, Any]) -> str: ...
def impact(change: float | None) -> str: ...
def pull(pull: float | None) -> str: ...
def similar_name(name: str, known: list[str]) -> str | None: ...
def refuse_parameter(name: str, known: list[str]) -> NoReturn: ...
