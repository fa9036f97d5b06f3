"""Work on several processes: equal to that of one to the bit, also when a worker is killed; and
what is said when it cannot be done.
"""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import nextstat
import numpy
import pytest
from nextstat import distributed
from nextstat.distributed import _pools

EXAMPLES = Path(__file__).parents[4] / "examples"
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(scope="module")
def model():
    return nextstat.load_workspace(EXAMPLES / "shapes.json")


@pytest.fixture(scope="module", params=["processes", "pool", "dask"])
def executor(request):
    """Each kind of worker: two processes on this machine."""
    if request.param == "processes":
        yield 2
    elif request.param == "pool":
        with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
            yield pool
    else:
        pytest.importorskip("distributed")
        with dask_client() as client:
            yield client


@contextlib.contextmanager
def dask_client():
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50)
    with cluster, Client(cluster) as client:
        yield client


def same_bits(first, second):
    """Whether two results are equal, arrays by their bytes."""
    assert first == second
    for key, value in first._fields.items():
        if isinstance(value, numpy.ndarray):
            assert value.tobytes() == second._fields[key].tobytes(), key
    return True


def test_fits_of_toys_are_those_of_one_process(model, executor):
    options = {"n_toys": 123, "first": 7, "seed": 5, "poi_uncertainty": True, "fixed": {"lumi": 1.01}}
    seen = []
    found = distributed.fit_toys(model, executor=executor, parts=5, progress=lambda *at: seen.append(at), **options)
    assert same_bits(found, nextstat.fit_toys(model, **options))
    assert seen[-1] == (123, 123) and len(seen) == 5


def test_tests_by_toys_are_those_of_one_process(model, executor):
    for options in ({"mu": 2.0, "n_toys": 90, "n_toys_b": 41}, {"mu": 0.0, "n_toys": 50, "test_stat": "q0"}):
        found = distributed.hypotest_toys(model, executor=executor, parts=4, seed=3, **options)
        assert same_bits(found, nextstat.hypotest_toys(model, seed=3, **options))


@pytest.mark.parametrize("error", [0.3, 0.03, 0.015, 1e-6])
def test_tests_by_toys_stop_where_one_process_does(model, executor, error):
    options = {"n_toys": 1300, "n_toys_b": 900, "seed": 3, "stop_at_error": error}
    whole = nextstat.hypotest_toys(model, 1.0, **options)
    assert (sum(whole.n_toys) < 2200) == (error > 1e-3)
    for parts in (None, 7):
        assert same_bits(distributed.hypotest_toys(model, 1.0, executor=executor, parts=parts, **options), whole)


def test_a_test_that_has_enough_toys_does_not_wait_for_the_rest(model):
    start = time.monotonic()
    found = distributed.hypotest_toys(model, 1.0, executor=2, n_toys=10**8, stop_at_error=0.02)
    assert found.CLs_obs_error < 0.02 and sum(found.n_toys) < 10**5 and time.monotonic() - start < 30


def test_rankings_are_those_of_one_process(model, executor):
    options = {"groups": {"statistics": "mc_stat_*"}, "minos": True}
    assert same_bits(distributed.ranking(model, executor=executor, parts=3, **options), nextstat.ranking(model, **options))


def test_grids_are_those_of_one_process(model, executor):
    values = ([0.0, 1.0, 2.0, 3.0], None)
    found = distributed.profile_scan(model, values, parameter=("mu", "norm_ttbar"), points=5, executor=executor)
    assert same_bits(found, nextstat.profile_scan(model, values, parameter=("mu", "norm_ttbar"), points=5))


def test_scans_of_many_parameters_are_those_of_one_process(model, executor):
    parameters = ("mu", "lumi", "norm_ttbar")
    found = distributed.run_all("profile_scan", {name: (model, {"parameter": name}) for name in parameters}, points=7, executor=executor)
    assert list(found) == list(parameters)
    for name, result in found.items():
        assert same_bits(result, nextstat.profile_scan(model, parameter=name, points=7))


def test_grids_of_signals_are_those_of_one_process(executor):
    background, signals = EXAMPLES / "background.json", EXAMPLES / "signals.json"
    found = distributed.signal_grid(background, signals, executor=executor)
    assert list(found) == ["signal_300", "signal_500", "signal_800"]
    for name, result in found.items():
        assert same_bits(result, nextstat.upper_limit(nextstat.load_workspace(background, patchset=signals, patch_name=name)))
    chosen = distributed.signal_grid(background, signals, patches=["signal_800"], procedure="hypotest", mu=2.0, executor=executor)
    assert list(chosen) == ["signal_800"] and chosen["signal_800"].mu == 2.0


def test_toys_that_fail_keep_their_place(executor):
    """Nothing is expected where the parameter of interest is fixed at zero, so that every toy with
    an event fails.
    """
    modifiers = [{"name": "mu", "type": "normfactor", "data": None}, {"name": "a", "type": "normsys", "data": {"hi": 1.1, "lo": 0.9}}]
    sample = {"name": "s", "data": [0.7], "modifiers": modifiers}
    workspace = {
        "channels": [{"name": "c", "samples": [sample]}],
        "observations": [{"name": "c", "data": [1.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0",
    }
    model = nextstat.model_of(workspace)
    options = {"params": [1.0, 0.0], "n_toys": 60, "seed": 2, "fixed": {"mu": 0.0}}
    with pytest.warns(nextstat.NextstatWarning, match="did not converge"):
        found, whole = distributed.fit_toys(model, executor=executor, parts=4, **options), nextstat.fit_toys(model, **options)
    assert 10 < found.n_failed < 50
    assert same_bits(found, whole)


def test_failed_toys_of_tests_are_counted(model, monkeypatch):
    nan = numpy.nan
    # Toys of the two hypotheses by turns, and then those of the longer run.
    parts = [numpy.array([0.1, 0.2, 3.0, nan]), numpy.array([nan, nan, 1.0])]
    monkeypatch.setattr(distributed, "run", lambda *_, **__: parts)
    with pytest.warns(nextstat.NextstatWarning, match="3 toys did not converge"):
        found = distributed.hypotest_toys(model, 2.0, n_toys=4, n_toys_b=3, executor=1)
    assert found.n_failed == (1, 2) and found.n_toys == (4, 3)
    assert found.toys_tested.tolist() == [0.1, 3.0, 1.0]


class Killer:
    """A progress callback that kills a worker once, when some of the work is done."""

    def __init__(self, processes):
        self.processes, self.killed = processes, None

    def __call__(self, done, total):
        if self.killed is None and done < total and (processes := self.processes()):
            self.killed = processes[-1]
            os.kill(self.killed, signal.SIGKILL)


def counted(pool, monkeypatch):
    """The names of the calls that `pool` is given, as they come."""
    names, submit = [], pool.submit

    def recorded(call, payloads, is_missing):
        names.append((call.name, is_missing))
        return submit(call, payloads, is_missing)

    monkeypatch.setattr(pool, "submit", recorded)
    monkeypatch.setattr(distributed, "pool_of", lambda _: pool)
    return names


def processes_of(pool):
    return [process.pid for slot in pool._slots if slot is not None for process in (slot._processes or {}).values()]


def test_a_killed_process_costs_its_part_only(model, monkeypatch):
    pool = _pools.Processes(2)
    names = counted(pool, monkeypatch)
    # When a part is done, the other process is mostly at the next one.
    killer = Killer(lambda: [pid for slot in pool._at.values() for pid in pool._slots[slot]._processes][:1])
    options = {"n_toys": 6000, "seed": 1}
    found = distributed.fit_toys(model, executor=2, parts=6, progress=killer, **options)
    assert killer.killed is not None
    assert same_bits(found, nextstat.fit_toys(model, **options))
    assert len(names) == 7, "six parts, and one of them again"


@pytest.mark.skipif("NEXTSTAT_KILL_WORKERS" not in os.environ, reason="a worker killed within a result stops a ProcessPoolExecutor of several for ever")
def test_a_killed_worker_of_a_pool_costs_what_was_under_way(model, monkeypatch):
    options = {"n_toys": 6000, "seed": 1}
    with ProcessPoolExecutor(2, mp_context=SPAWN) as executor:
        pool = _pools.Borrowed(executor)
        names = counted(pool, monkeypatch)
        killer = Killer(lambda: list(executor._processes))
        found = distributed.fit_toys(model, executor=executor, parts=8, progress=killer, **options)
    assert killer.killed is not None
    assert same_bits(found, nextstat.fit_toys(model, **options))
    # The two workers' parts, the one that waited, and as many answers of new workers that they miss
    # the model, once each time.
    assert len([name for name, is_missing in names if not is_missing]) <= 8 + 3


def test_a_killed_worker_of_dask_is_made_up_for(model):
    pytest.importorskip("distributed")
    options = {"n_toys": 6000, "seed": 1}
    with dask_client() as client:
        killer = Killer(lambda: list(client.run(os.getpid).values()))
        found = distributed.fit_toys(model, executor=client, parts=6, progress=killer, **options)
    assert killer.killed is not None
    assert same_bits(found, nextstat.fit_toys(model, **options))


ORPHANS = """
import nextstat
from nextstat import distributed
from nextstat.distributed import _pools

if __name__ == "__main__":
    model = nextstat.load_workspace("examples/shapes.json")
    made = _pools.multiprocessing.active_children
    def tell(done, total):
        print(*(process.pid for process in made()), flush=True)
    distributed.fit_toys(model, n_toys=10_000_000, executor=2, parts=100_000, progress=tell)
"""


def is_there(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    # What is dead but not yet waited for is not there either.
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def pair_of_workers(parent, output):
    """The process ids that `parent` writes to the file `output` once it has two workers."""
    deadline = time.monotonic() + 120.0
    while parent.poll() is None and time.monotonic() < deadline:
        for line in output.read_text().splitlines(keepends=True):
            pids = line.split()
            if line.endswith("\n") and len(pids) == 2 and all(pid.isdigit() for pid in pids):
                return [int(pid) for pid in pids]
        time.sleep(0.1)
    pytest.fail(f"no two workers; exit status {parent.poll()}, and output\n{output.read_text()}")


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_workers_end_with_the_process_that_started_them(examples_folder):
    (examples_folder / "orphans.py").write_text(ORPHANS)
    output = examples_folder / "output.txt"
    with output.open("w") as file:
        parent = subprocess.Popen([sys.executable, "orphans.py"], stdout=file, stderr=subprocess.STDOUT)
    try:
        workers = pair_of_workers(parent, output)
    finally:
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 20.0
    while any(map(is_there, workers)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not any(map(is_there, workers))


def test_a_closed_client_is_said_to_be_closed(model):
    pytest.importorskip("distributed")
    with dask_client() as client:
        client.close()
        with pytest.raises(distributed.WorkerError, match="is closed"):
            distributed.fit_toys(model, n_toys=10, executor=client)


def test_a_part_that_kills_every_worker_is_named(model, monkeypatch):
    pool = _pools.Processes(1)
    submit = pool.submit

    def deadly(call, payloads, is_missing):
        future = submit(call, payloads, is_missing)
        for pid in processes_of(pool):
            os.kill(pid, signal.SIGKILL)
        return future

    monkeypatch.setattr(pool, "submit", deadly)
    monkeypatch.setattr(distributed, "pool_of", lambda _: pool)
    with pytest.raises(distributed.WorkerError, match="toys 0 to 4000: its worker was lost 3 times"):
        distributed.fit_toys(model, n_toys=4000, executor=1, parts=1, retries=2)


def test_models_travel_once_to_each_process(model, monkeypatch):
    sent = []
    submit = ProcessPoolExecutor.submit

    def recorded(self, function, digest, packed, *rest):
        sent.append((id(self), packed is not None))
        return submit(self, function, digest, packed, *rest)

    monkeypatch.setattr(ProcessPoolExecutor, "submit", recorded)
    distributed.fit_toys(model, n_toys=40, executor=2, parts=8)
    assert sum(has_model for _, has_model in sent) == 2
    sent.clear()
    with ProcessPoolExecutor(2, mp_context=SPAWN) as executor:
        distributed.fit_toys(model, n_toys=40, executor=executor, parts=12)
    assert sum(has_model for _, has_model in sent) <= 4


def test_what_a_caller_raises_ends_the_work_and_the_processes(model):
    def stop(done, total):
        raise KeyboardInterrupt

    before = set(multiprocessing.active_children())
    with pytest.raises(KeyboardInterrupt):
        distributed.fit_toys(model, n_toys=40_000, executor=2, parts=40, progress=stop)
    end = time.monotonic() + 10
    while set(multiprocessing.active_children()) - before and time.monotonic() < end:
        time.sleep(0.05)
    assert not set(multiprocessing.active_children()) - before


def test_errors_of_the_library_are_those_of_one_process(model, executor):
    with pytest.raises(nextstat.ParameterError, match="the parameter `lumy`") as caught:
        distributed.fit_toys(model, model.init, n_toys=10, fixed={"lumy": 1.0}, executor=executor)
    assert "lumi" in caught.value.hint
    found = distributed.run_all("hypotest", {"good": model, "bad": (model, {"fixed": {"nothing": 1.0}})}, errors="return", executor=executor)
    assert found["good"].converged and isinstance(found["bad"], nextstat.ParameterError)


def test_what_cannot_be_done_is_said(model):
    with pytest.raises(TypeError, match="`executor` is a number of processes, an executor with the method `submit`"):
        distributed.fit_toys(model, executor="cluster")
    with pytest.raises(TypeError, match="a number of processes, an executor"):
        distributed.fit_toys(model, executor=None)
    for not_one in (ThreadPoolExecutor, "2", [2], model):
        with pytest.raises(TypeError, match="`executor` is a number of processes"):
            distributed.fit_toys(model, executor=not_one)
    with pytest.raises(ValueError, match="unknown procedure `fti`"):
        distributed.run_all("fti", {"a": model}, executor=1)
    with pytest.raises(nextstat.WorkspaceError, match="made for another workspace"):
        distributed.signal_grid(EXAMPLES / "shapes.json", EXAMPLES / "signals.json", executor=1)
    with pytest.raises(nextstat.WorkspaceError, match="no patch named `signal_301`"):
        distributed.signal_grid(EXAMPLES / "background.json", EXAMPLES / "signals.json", patches="signal_301", executor=1)
    with pytest.raises(TypeError, match="`parameter` is a pair of names"):
        distributed.profile_scan(model, parameter=("mu",), executor=1)
    with pytest.raises(TypeError, match="unknown option `fxied`; choose one of `data`"):
        distributed.fit_toys(model, fxied={"mu": 1.0}, executor=1)
    with pytest.raises(nextstat.ParameterError, match="`executor` is 0, and must be at least 1"):
        distributed.fit_toys(model, executor=0)
    for call in (distributed.fit_toys, distributed.hypotest_toys):
        with pytest.raises(nextstat.ParameterError, match="`n_toys`: `0` is not a whole number from 1 to 281474976710656"):
            call(model, n_toys=0, executor=1)


def test_parts_cover_everything_once():
    for total, size, parts in [(10, 3, None), (100_000, 8, None), (5, 2, 9), (0, 2, None), (1, 1, 1)]:
        shares = distributed._shares(total, size, parts, 1000)
        assert [start for start, _ in shares[1:]] == [end for _, end in shares[:-1]]
        assert shares[0][0] == 0 and shares[-1][1] == total
    assert len(distributed._shares(100_000, 8, None, 1000)) == 32
    assert len(distributed._shares(10, 3, None, 1000)) == 3


def test_threads_are_workers_too(model):
    with ThreadPoolExecutor(2) as executor:
        assert same_bits(distributed.fit_toys(model, n_toys=30, executor=executor), nextstat.fit_toys(model, n_toys=30))


class LazyFuture:
    """A future of an executor that works only while a result is waited for, as TaskVine's does."""

    def __init__(self, function, arguments):
        self.work, self.found = (function, arguments), None

    def done(self):
        return self.found is not None

    def result(self, timeout=None):
        if self.found is None:
            function, arguments = self.work
            self.found = (function(*arguments),)
        return self.found[0]


class LazyExecutor:
    def submit(self, function, *arguments):
        return LazyFuture(function, arguments)


def test_any_object_that_submits_is_an_executor(model):
    options = {"n_toys": 60, "seed": 4}
    assert same_bits(distributed.fit_toys(model, executor=LazyExecutor(), parts=3, **options), nextstat.fit_toys(model, **options))


@pytest.mark.parametrize("number", [1, 3])
def test_what_an_executor_gives_up_is_not_repeated_here(model, number):
    submitted = []

    class Faulty(LazyExecutor):
        def submit(self, function, *arguments):
            submitted.append(arguments)
            if len(submitted) == number:
                future = Future()
                future.set_exception(BrokenExecutor("no workers"))
                return future
            return super().submit(function, *arguments)

    with pytest.raises(distributed.WorkerError, match=r"its worker was lost \(no workers\)"):
        distributed.fit_toys(model, n_toys=60, executor=Faulty(), parts=3, retries=5)
    assert len(submitted) == 3


def test_toys_that_may_not_be_needed_are_not_submitted_far_ahead(model):
    waiting = []

    class Counted(LazyExecutor):
        max_workers = 2

        def submit(self, function, *arguments):
            future = super().submit(function, *arguments)
            waiting.append(future)
            assert sum(not future.done() for future in waiting) <= 8
            return future

    options = {"n_toys": 100_000, "seed": 3, "stop_at_error": 0.02}
    found = distributed.hypotest_toys(model, 1.0, executor=Counted(), **options)
    assert same_bits(found, nextstat.hypotest_toys(model, 1.0, **options)) and len(waiting) < 60
