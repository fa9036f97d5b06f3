"""Long calls: they tell how far they are, stop at Ctrl-C, let other threads run, and leave no
memory behind.
"""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import nextstat
import pytest

PACKAGE = os.path.dirname(os.path.dirname(nextstat.__file__))

# Each would take minutes.
LONG_CALLS = {
    "fit_toys": "nextstat.fit_toys(model, n_toys=10**7)",
    "hypotest_toys": "nextstat.hypotest_toys(model, n_toys=10**7)",
    "interval": "nextstat.interval(model, tolerance=1e-5, max_toys=10**7)",
    "upper_limit_toys": "nextstat.upper_limit_toys(model, tolerance=1e-5, max_toys=10**7)",
    "goodness_of_fit": "nextstat.goodness_of_fit(model, toys=10**7)",
    "profile_scan": "nextstat.profile_scan(model, points=10**6)",
    "grid": "nextstat.profile_scan(model, parameter=('mu', 'norm_ttbar'), points=1000)",
    "fit": "nextstat.fit(model, multi_start=10**7)",
    "upper_limit": "nextstat.upper_limit(model, multi_start=10**6)",
    "limit_scan": "nextstat.limit_scan(model, {'norm_ttbar': np.linspace(0.5, 1.5, 10**5)})",
    "every_poi": "nextstat.every_poi(model, lambda m: nextstat.upper_limit(m, multi_start=10**6))",
    "hypotest": "nextstat.hypotest(model, multi_start=10**6)",
    "toys of many starts": "nextstat.fit_toys(model, n_toys=10, multi_start=10**7)",
    "scan of many starts": "nextstat.profile_scan(model, points=5, multi_start=10**7)",
    "ranking of many starts": "nextstat.ranking(model, multi_start=10**7)",
    "contours of many starts": "nextstat.contours(model, ('mu', 'norm_ttbar'), multi_start=10**7)",
    "report of many starts": "nextstat.report(model, multi_start=10**7)",
    "fits": "nextstat.fits(model, np.full((10**6, 7), 20.0))",
    "fits of many starts": "nextstat.fits(model, np.full((10, 7), 20.0), multi_start=10**7)",
    "bootstrap": "nextstat.bootstrap(np.zeros(10**7, dtype=int), np.arange(10**7), n_replicas=10**4)",
    "bootstrap_weights": "nextstat.bootstrap_weights(np.arange(3 * 10**6))",
    "throw_toys": "nextstat.throw_toys(model, model.init, n_toys=3 * 10**7)",
    "nll": "model.nll(np.broadcast_to(model.init, (2 * 10**7, 18)), threads=1)",
    "expected_data": "model.expected_data(np.broadcast_to(model.init, (10**7, 18)))",
    "every_patch": "nextstat.every_patch('examples/background.json', 'examples/signals.json', lambda m: nextstat.fit(m, multi_start=10**7))",
    "toys of every_patch": "nextstat.every_patch('examples/background.json', 'examples/signals.json', lambda m: nextstat.fit_toys(m, n_toys=10**7))",
    "many fits of every_patch": "nextstat.every_patch('examples/background.json', 'examples/signals.json', lambda m: [nextstat.fit(m) for _ in range(10**6)])",
}


def run(code, **options):
    environment = {**os.environ, "PYTHONPATH": PACKAGE}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process on Windows")
@pytest.mark.parametrize("call", LONG_CALLS)
def test_ctrl_c_stops_the_call(examples_folder, call):
    code = f"""
        import signal, nextstat
        import numpy as np
        # What a shell starts in the background inherits that the signal is ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        model = nextstat.load_workspace("examples/shapes.json")
        print("ready", flush=True)
        try:
            {LONG_CALLS[call]}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        print(nextstat.fit(model).converged)
    """
    process = run(code, cwd=examples_folder)
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        assert process.poll() is None, "the call is not long enough"
        process.send_signal(signal.SIGINT)
        # It takes a twentieth of a second, and the call minutes; the machine may be busy.
        out, err = process.communicate(timeout=30)
        assert (out.split(), process.returncode, err) == (["interrupted", "True"], 0, "")
    finally:
        process.kill()


def test_a_handler_of_signals_is_called_and_may_go_on(examples_folder):
    code = """
        import signal, nextstat
        model = nextstat.load_workspace("examples/shapes.json")
        seen = []
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
            signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
            while not seen:
                nextstat.fit(model, multi_start=300)
            n = len(seen)
            nextstat.fit_toys(model, n_toys=2000)
            print(len(seen) > n or "too quick")
        else:
            print(True)
    """
    out, err = run(code, cwd=examples_folder).communicate(timeout=60)
    assert out.strip() in ("True", "too quick") and not err


def test_progress_is_told(root):
    model = nextstat.load_workspace(root / "examples/shapes.json")
    for call, total in (
        (lambda tell: nextstat.fit_toys(model, n_toys=400, progress=tell), 400),
        (lambda tell: nextstat.hypotest_toys(model, n_toys=100, progress=tell), 200),
        (lambda tell: nextstat.goodness_of_fit(model, toys=50, progress=tell), 50),
        (lambda tell: nextstat.profile_scan(model, points=9, progress=tell), None),
        (lambda tell: nextstat.profile_scan(model, parameter=("mu", "norm_ttbar"), points=9, progress=tell), None),
        (lambda tell: nextstat.ranking(model, progress=tell), None),
        (lambda tell: nextstat.limit_scan(model, {"norm_ttbar": [0.9, 1.1]}, progress=tell), 2),
        (lambda tell: nextstat.contours(model, ("mu", "norm_ttbar"), progress=tell), None),
        (lambda tell: nextstat.every_patch(root / "examples/background.json", root / "examples/signals.json", nextstat.fit, progress=tell), 3),
    ):
        told = []
        call(lambda done, total, told=told: told.append((done, total)))
        assert told and told == sorted(told), told
        assert told[-1][0] <= told[-1][1]
        if total is not None:
            assert told[-1] == (total, total)


def test_what_a_progress_callback_raises_stops_the_work(root):
    model = nextstat.load_workspace(root / "examples/shapes.json")

    class Enough(Exception):
        pass

    def tell(done, total):
        raise Enough

    start = time.monotonic()
    for call in (nextstat.fit_toys, nextstat.hypotest_toys):
        with pytest.raises(Enough):
            call(model, n_toys=10**7, progress=tell)
    assert time.monotonic() - start < 10


def test_a_bar_is_shown_if_asked_for(root, capsys):
    pytest.importorskip("tqdm")
    model = nextstat.load_workspace(root / "examples/shapes.json")
    nextstat.fit_toys(model, n_toys=50, progress=True)
    assert "50/50" in capsys.readouterr().err


def test_the_bar_says_what_it_needs(root, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"pip install 'nextstat-rs\[progress\]'"):
        nextstat.fit_toys(nextstat.load_workspace(root / "examples/simple.json"), n_toys=1, progress=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda model: nextstat.fit(model, multi_start=3000),
        lambda model: nextstat.fit_toys(model, n_toys=20_000, threads=1),
        lambda model: model.nll([model.init] * 500_000, threads=1),
        lambda model: nextstat.throw_toys(model, model.init, n_toys=1_000_000),
    ],
    ids=["fit", "fit_toys", "nll", "throw_toys"],
)
def test_other_threads_run_meanwhile(root, call):
    model = nextstat.load_workspace(root / "examples/shapes.json")
    ticks, is_over = [], threading.Event()

    def tick():
        while not is_over.wait(0.005):
            ticks.append(time.monotonic())

    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.monotonic()
    call(model)
    took = time.monotonic() - start
    is_over.set()
    ticker.join()
    # If the call kept the lock, none would run.
    inside = [when for when in ticks if start < when < start + took]
    assert len(inside) >= 3, (len(inside), took)


def test_memory_is_flat_over_many_models(examples_folder):
    pytest.importorskip("resource")
    code = """
        import resource, nextstat
        text = open("examples/shapes.json").read()

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        def build(n):
            for _ in range(n):
                model = nextstat.model_of(text)
                model.nll(model.init)

        build(500)
        for _ in range(20):
            nextstat.fit(model=nextstat.model_of(text))
        before = peak()
        build(10_000)
        for _ in range(100):
            nextstat.fit(model=nextstat.model_of(text))
        print(peak() - before)
    """
    out, err = run(code, cwd=examples_folder).communicate(timeout=300)
    assert not err
    grown = int(out) / (1 if sys.platform == "darwin" else 1024) / (1024 if sys.platform == "darwin" else 1)
    # A model of this workspace takes tens of kB; 10,000 of them would be hundreds of MB.
    assert grown < 8, f"{grown} MiB"


def test_import_takes_numpy_along_only_when_needed(examples_folder):
    code = """
        import sys
        before = set(sys.modules)
        import nextstat
        print(sorted({name.split(".")[0] for name in set(sys.modules) - before} & {"numpy", "matplotlib", "tqdm", "dask", "scipy"}))
        print(nextstat.fit(nextstat.load_workspace("examples/simple.json")).converged)
    """
    out, err = run(code, cwd=examples_folder).communicate(timeout=60)
    assert out.splitlines() == ["[]", "True"] and not err


def test_check_is_stopped_by_its_stopper(examples_folder):
    model = nextstat.load_workspace("examples/shapes.json")
    stopper = nextstat._nextstat.Stopper()
    assert stopper.call(nextstat.check, model).n_errors == 0
    stopper.stop()
    with pytest.raises(KeyboardInterrupt):
        stopper.call(nextstat.check, model)


@pytest.mark.skipif(sys.platform == "win32", reason="stacks are not reserved on Windows")
def test_calls_work_where_no_thread_can_be_started(examples_folder):
    code = """
        import nextstat
        model = nextstat.load_workspace("examples/shapes.json")
        toys = nextstat.fit_toys(model, n_toys=5, threads=4)
        print(toys.bestfit.sum(), nextstat.ranking(model, threads=4), model.nll([model.init] * 100, threads=4).sum())
    """
    here = run(code, cwd=examples_folder)
    expected = here.communicate()
    # No system has room for such a stack.
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=examples_folder,
        env={**os.environ, "PYTHONPATH": PACKAGE, "RUST_MIN_STACK": str(2**47)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (process.stdout, process.stderr, process.returncode) == (*expected, here.returncode) and process.stdout
