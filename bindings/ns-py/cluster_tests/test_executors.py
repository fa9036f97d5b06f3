"""Executors of other packages, a worker of which is killed: the bytes of one process.

Each package is skipped where it is absent; `make test-cluster` installs them.
"""

import contextlib
import os
import re
import signal
import sys
import time
from concurrent.futures import Executor
from pathlib import Path

import nextstat
import numpy
import pytest
from nextstat import distributed

ROOT = Path(__file__).parents[3]
# Parts of a second, so that a worker is killed within one.
TOYS = {"n_toys": 16_000, "seed": 1, "poi_uncertainty": True}
PARTS = 16


def blocks(language):
    """The code of the page on clusters in a language of its own, which no other test runs."""
    page = (ROOT / "docs/how-to/cluster.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def search_path(monkeypatch):
    """Parsl starts its workers by a script of the environment that these tests run in."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture(scope="module")
def model():
    return nextstat.load_workspace(ROOT / "examples/shapes.json")


@pytest.fixture(scope="module")
def one_process(model):
    return nextstat.fit_toys(model, **TOYS)


@contextlib.contextmanager
def dask(tmp_path):
    distributed_package = pytest.importorskip("distributed")
    cluster = distributed_package.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
    with cluster, distributed_package.Client(cluster) as client:
        yield client, lambda: client.run(os.getpid).values()


@contextlib.contextmanager
def dask_executor(tmp_path):
    """The executor of `concurrent.futures` that a client of dask makes."""
    with dask(tmp_path) as (client, processes):
        yield client.get_executor(), processes


@contextlib.contextmanager
def parsl(tmp_path):
    pytest.importorskip("parsl")
    from parsl.concurrent import ParslPoolExecutor
    from parsl.config import Config
    from parsl.executors import HighThroughputExecutor
    from parsl.providers import LocalProvider

    # Without a limit of blocks Parsl starts more of them for a queue of tasks.
    pool = HighThroughputExecutor(
        address="127.0.0.1", max_workers_per_node=2, cores_per_worker=0.5, heartbeat_period=1,
        provider=LocalProvider(init_blocks=1, max_blocks=1),
    )
    config = Config(executors=[pool], retries=3, run_dir=str(tmp_path / "parsl"), initialize_logging=False)
    with ParslPoolExecutor(config) as executor:
        yield executor, lambda: {future.result() for future in [executor.submit(os.getpid) for _ in range(40)]}


@contextlib.contextmanager
def loky(tmp_path):
    from_package = pytest.importorskip("loky")
    executor = from_package.get_reusable_executor(max_workers=2)
    try:
        yield executor, lambda: executor._processes
    finally:
        from_package.get_reusable_executor().shutdown(wait=True, kill_workers=True)


@contextlib.contextmanager
def ray(tmp_path):
    package = pytest.importorskip("ray")
    package.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    [block] = blocks("ray")
    names = {"distributed": distributed}
    exec(block.partition("\ntoys =")[0], names)
    executor = names["RayExecutor"]()
    try:
        yield executor, lambda: {future.result() for future in [executor.submit(os.getpid) for _ in range(40)]}
    finally:
        package.shutdown()


@contextlib.contextmanager
def executorlib(tmp_path):
    package = pytest.importorskip("executorlib")
    with package.SingleNodeExecutor(max_workers=2) as executor:
        yield executor, None


EXECUTORS = {function.__name__: function for function in (dask, dask_executor, parsl, loky, ray, executorlib)}


def same_bits(first, second):
    assert first == second
    for key, value in first._fields.items():
        if isinstance(value, numpy.ndarray):
            assert value.tobytes() == second._fields[key].tobytes(), key
    return True


def processor_time(pid):
    """The processor time of a process in ticks of the clock; 0 if there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def is_computing(pid):
    """Whether a process is within a part: a queue may be lost with a worker that waits for one."""
    before = processor_time(pid)
    time.sleep(0.05)
    return processor_time(pid) >= before + 2


@pytest.mark.skipif(sys.platform != "linux", reason="the states of processes are read from /proc")
@pytest.mark.parametrize("name", EXECUTORS)
def test_a_killed_worker_leaves_no_trace(name, model, one_process, tmp_path):
    with EXECUTORS[name](tmp_path) as (executor, processes):
        pids = list(processes()) if processes is not None else []
        killed = []

        def kill(done, total):
            pid = next((pid for pid in pids if not killed and done < total and is_computing(pid)), None)
            if pid is not None:
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)

        found = distributed.fit_toys(model, executor=executor, parts=PARTS, progress=kill, **TOYS)
        assert bool(killed) == bool(pids), "no worker was killed while the others worked"
        assert same_bits(found, one_process)


@pytest.mark.parametrize("name", EXECUTORS)
def test_every_procedure_is_that_of_one_process(name, model, tmp_path):
    with EXECUTORS[name](tmp_path) as (executor, _):
        test = {"n_toys": 1300, "n_toys_b": 900, "seed": 3, "stop_at_error": 0.03}
        assert same_bits(distributed.hypotest_toys(model, 1.0, executor=executor, parts=7, **test), nextstat.hypotest_toys(model, 1.0, **test))
        assert same_bits(distributed.ranking(model, executor=executor, parts=3), nextstat.ranking(model))
        background, signals = ROOT / "examples/background.json", ROOT / "examples/signals.json"
        for signal_name, limit in distributed.signal_grid(background, signals, executor=executor).items():
            alone = nextstat.load_workspace(background, patchset=signals, patch_name=signal_name)
            assert same_bits(limit, nextstat.upper_limit(alone))
        with pytest.raises(nextstat.ParameterError, match="the parameter `lumy`"):
            distributed.fit_toys(model, model.init, n_toys=10, fixed={"lumy": 1.0}, executor=executor)


def test_the_executors_of_the_page_are_those_of_their_packages():
    """Globus Compute needs its service, and MPI its launcher: what is known of them is that their
    executors are those of `concurrent.futures`.
    """
    found = 0
    for package, name in (("globus_compute_sdk", "Executor"), ("mpi4py.futures", "MPIPoolExecutor")):
        with contextlib.suppress(ImportError, RuntimeError):
            assert issubclass(getattr(__import__(package, fromlist=[name]), name), Executor)
            found += 1
    if not found:
        pytest.skip("neither globus-compute-sdk nor mpi4py")


def test_the_block_of_parsl_runs(model, tmp_path, monkeypatch):
    pytest.importorskip("parsl")
    [block] = blocks("parsl")
    monkeypatch.chdir(tmp_path)
    # On one machine, with less toys.
    block = block.replace("HighThroughputExecutor(", 'HighThroughputExecutor(address="127.0.0.1", max_workers_per_node=2, ')
    block = block.replace("n_toys=100_000", "n_toys=400").replace("parts=100", "parts=4")
    names = {"model": model, "distributed": distributed}
    exec(block, names)
    assert same_bits(names["toys"], nextstat.fit_toys(model, n_toys=400))
