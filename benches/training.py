"""What a loss of `nextstat.torch` adds to a training step: forward and backward, beside a network
of its own.

python benches/training.py [--data ../shared/data] [--relaxed PYTHON]

Run by a Python that has nextstat and PyTorch. Small: 4 bins and 8 parameters. Large: the published
atlas_tHu_fcnc with 184 parameters, if it is there. Templates move by half a percent from step to
step, as those of a few ten thousand events do. Medians of the processor's time, one thread; from
the starting values (the default of a session) and, in turns with that, with fits that follow each
other.

The peer is `relaxed` (JAX) where this Python or that of --relaxed has it: the same training with q0
as its loss, compiled as a whole, of a model that both can fit, in turns with ours.
"""

import argparse
import itertools
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import nextstat
import nextstat.torch as nt
import torch
from counting import numbers, workspace


def small():
    """Three samples in four bins: a signal, a free background, two systematics and four gammas."""

    def sample(name, data, *modifiers):
        return {"name": name, "data": data, "modifiers": list(modifiers)}

    def shape(nominal, size):
        return {"hi_data": [y * (1 + size * i) for i, y in enumerate(nominal)], "lo_data": [y * (1 - size * i) for i, y in enumerate(nominal)]}

    large, other = [200.0, 150.0, 120.0, 90.0], [40.0, 50.0, 60.0, 70.0]
    samples = [
        sample("signal", [3.0, 6.0, 10.0, 14.0], {"name": "mu", "type": "normfactor", "data": None}),
        sample("large", large, {"name": "k", "type": "normfactor", "data": None}, {"name": "jes", "type": "histosys", "data": shape(large, 0.01)}),
        sample("other", other, {"name": "xs", "type": "normsys", "data": {"lo": 0.9, "hi": 1.1}}),
    ]
    for one in samples[1:]:
        one["modifiers"].append({"name": "stat", "type": "staterror", "data": [(0.3 * y) ** 0.5 for y in one["data"]]})
    channel = {"name": "channel", "samples": samples}
    return nextstat.model_of(
        {
            "channels": [channel],
            "observations": [{"name": "channel", "data": [245.0, 207.0, 185.0, 172.0]}],
            "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
            "version": "1.0.0",
        }
    )


def signal_of(model):
    workspace = json.loads(model.workspace_json())
    for channel in workspace["channels"]:
        for sample in channel["samples"]:
            if any(modifier["type"] == "normfactor" and modifier["name"] == model.poi for modifier in sample["modifiers"]):
                return sample["name"]
    raise SystemExit("no sample is scaled by the parameter of interest")


def median(step, budget=2.0):
    for _ in range(5):
        step()
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < budget:
        start = time.process_time()
        step()
        times.append(time.process_time() - start)
    return 1e3 * statistics.median(times)


def training(session):
    """Steps of a small network: takes a loss of the templates."""
    values = torch.tensor(session.values.copy())
    network = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, session.n_inputs)).double()
    events = torch.randn(256, 8, dtype=torch.float64)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-6)
    fluctuations = itertools.cycle(0.005 * torch.randn(61, session.n_inputs, dtype=torch.float64))

    def step(loss):
        optimizer.zero_grad()
        inputs = values * (1 + 0.01 * torch.tanh(network(events).mean(0)) + next(fluctuations))
        loss(inputs).backward()
        optimizer.step()

    return step


def measure(name, model):
    losses = {
        "profiled nll": lambda s, x: nt.profiled_nll(s, x),
        "q0": lambda s, x: nt.q0(s, x),
        "expected significance": lambda s, x: nt.significance(s, x, asimov=True),
        "expected limit": lambda s, x: nt.upper_limit(s, x),
    }
    print(f"{name}: {model.n_params} parameters, {model.n_bins} bins")
    session, cold = (nt.DifferentiableSession(model, signal_of(model), warm_start=warm_start) for warm_start in (True, False))
    step = training(session)
    own = median(lambda: step(lambda x: x.sum()))
    print(f"  {'the network alone':28} {own:8.3f} ms")
    for what, loss in losses.items():
        both = [[median(lambda loss=loss, made=made: step(lambda x: loss(made, x)), 0.7) for made in (session, cold)] for _ in range(3)]
        whole, without = (statistics.median(column) for column in zip(*both, strict=True))
        print(f"  {'with ' + what:28} {without:8.3f} ms, {without - own:.3f} ms more; {whole - own:.3f} ms more with warm starts")


def with_relaxed(python, n_bins):
    """q0 as a loss, by nextstat and by `relaxed`, in turns."""
    command = [python, str(Path(__file__).with_name("relaxed_peer.py")), "--serve", "--bins", str(n_bins)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        versions = json.loads(peer.stdout.readline())
        session = nt.DifferentiableSession(nextstat.model_of(workspace(*numbers(n_bins))), "signal")
        step = training(session)
        rounds = []
        for _ in range(3):
            own, whole = (median(lambda loss=loss: step(loss), 1.0) for loss in (lambda x: x.sum(), lambda x: nt.q0(session, x)))
            peer.stdin.write("go\n")
            peer.stdin.flush()
            rounds.append([own, whole, *json.loads(peer.stdout.readline())])
        peer.stdin.close()
    own, whole, its_own, its_whole = (statistics.median(column) for column in zip(*rounds, strict=True))
    ours, theirs = whole - own, its_whole - its_own
    print(f"one nuisance parameter for each of {n_bins} bins, q0: {ours:.3f} ms more than the network's {own:.3f} ms; relaxed {versions['relaxed']}", end=" ")
    print(f"(JAX {versions['jax']}) {theirs:.3f} ms more than {its_own:.3f} ms: {theirs / ours:.1f} times")


def python_with_relaxed(given):
    """The Python to run the peer by, if there is one."""
    python = given or sys.executable
    found = subprocess.run([python, "-c", "import relaxed, nextstat"], capture_output=True, check=False).returncode == 0
    if given and not found:
        raise SystemExit(f"error: `{given}` cannot import both relaxed and nextstat")
    return python if found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--relaxed", metavar="PYTHON", help="a Python that has `relaxed` and nextstat")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, nextstat {nextstat.__version__}, Python {platform.python_version()}")
    measure("generated", small())
    published = arguments.data / "workspaces/atlas_tHu_fcnc.json"
    if published.is_file():
        measure("atlas_tHu_fcnc", nextstat.load_workspace(published))
    peer = python_with_relaxed(arguments.relaxed)
    if peer is None:
        print("no peer: this Python has no `relaxed`, and --relaxed names no other")
        return
    for n_bins in (4, 16):
        with_relaxed(peer, n_bins)


if __name__ == "__main__":
    main()
