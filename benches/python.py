"""What Python adds: fits, tests, imports and models through the package, beside the same work of
the library.

python benches/python.py [--data ../shared/data] [--bin target/release] [--json]

Run it with the Python that has the package (`make py` installs it into .venv). Where `ns-benches`
is in --bin, it measures the fit in the same run, by turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

CASE = "atlas_tHu_fcnc"
ROOT = Path(__file__).resolve().parents[1]


def times(call, n, warm=3):
    """Seconds of each of `n` calls."""
    for _ in range(warm):
        call()
    found = []
    for _ in range(n):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return found


def import_time(n=9):
    """Seconds that `import nextstat` adds to an interpreter that starts, the median of `n`."""

    def start(code):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - begin

    pairs = [(start("import nextstat"), start("pass")) for _ in range(n)]
    return statistics.median(with_it for with_it, _ in pairs) - statistics.median(without for _, without in pairs)


def rust_fit(binary, data):
    """Seconds of a fit with uncertainties in the library, from `ns-benches`."""
    done = subprocess.run([binary, "cases", "--json", "--case", CASE, "--data", data], capture_output=True, text=True, check=True)
    return 1e-6 * json.loads(done.stdout)[CASE]["fit"]["min_us"]


def peak_memory():
    """Largest resident size of this process so far, in MiB."""
    try:
        import resource
    except ImportError:
        return None
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / 2**20 if sys.platform == "darwin" else size / 2**10


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--data", default=os.environ.get("DATA_DIR", ROOT / "../shared/data"), type=Path, help="published workspaces")
    parser.add_argument("--bin", default=ROOT / "target/release", type=Path, help="where ns-benches is")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    arguments = parser.parse_args()

    found = {"import_s": import_time()}
    import nextstat

    found["nextstat"] = nextstat.__version__
    workspace = next(iter(sorted(arguments.data.glob(f"workspaces/{CASE}.json*"))), None)
    if workspace is not None:
        found.update(measure_fit(nextstat, nextstat.load_workspace(workspace), arguments))
    else:
        print(f"skipped: the fit of {CASE}, as it is not in {arguments.data}", file=sys.stderr)
    found.update(measure_small(nextstat))
    found.update(measure_models(nextstat))
    print(
        json.dumps(found, indent=4)
        if arguments.json
        else "\n".join(f"{name:36} {value:.6g}" if isinstance(value, float) else f"{name:36} {value}" for name, value in found.items())
    )


def measure_fit(nextstat, model, arguments, rounds=5):
    binary = arguments.bin / "ns-benches"
    whole, narrow, rust = [], [], []
    for _ in range(rounds):
        whole.append(min(times(lambda: nextstat.fit(model), 40)))
        narrow.append(min(times(lambda: nextstat.fit(model, covariance=False), 40)))
        if binary.is_file():
            rust.append(rust_fit(binary, arguments.data))
    found = {"fit_ms": 1e3 * min(narrow), "fit_with_covariance_ms": 1e3 * min(whole)}
    if rust:
        found["fit_in_rust_ms"] = 1e3 * min(rust)
        found["fit_over_rust"] = min(narrow) / min(rust)
    return found


def measure_small(nextstat, n=1000):
    """A loop of small tests: all of it, and what is not the library's."""
    from nextstat import _nextstat

    model = nextstat.load_workspace(ROOT / "examples/simple.json")
    values = [0.5 + 0.001 * i for i in range(n)]

    def loop():
        for mu in values:
            nextstat.hypotest(model, mu)

    def numbers_only():
        for mu in values:
            _nextstat.hypotest_model(model, settings, mu, "qtilde")

    settings = {}
    per_test = min(times(loop, 7)) / n
    per_call = min(times(numbers_only, 7)) / n
    one = model.init
    return {
        "hypotest_us": 1e6 * per_test,
        "hypotest_face_us": 1e6 * (per_test - per_call),
        "nll_us": 1e6 * min(times(lambda: [model.nll(one) for _ in range(1000)], 5)) / 1000,
    }


def measure_models(nextstat, n=10_000):
    text = (ROOT / "examples/shapes.json").read_text("utf-8")
    for _ in range(500):
        nextstat.model_of(text)
    before = peak_memory()
    start = time.perf_counter()
    for _ in range(n):
        nextstat.model_of(text)
    seconds = time.perf_counter() - start
    after = peak_memory()
    return {"model_us": 1e6 * seconds / n, "memory_of_10000_models_mib": None if after is None else after - before}


if __name__ == "__main__":
    main()
