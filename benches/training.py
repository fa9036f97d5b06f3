"""What a loss of `nextstat.torch` adds to a training step: forward and backward, beside a network of its own.

python benches/training.py [--data ../shared/data]

Run by a Python that has nextstat and PyTorch. Small: 4 bins and 8 parameters. Large: the published atlas_tHu_fcnc with 184 parameters, if it is there.
Templates move by half a percent from step to step, as those of a few ten thousand events do. Medians of the processor's time, one thread; with fits that
follow each other and, in turns with them, without.
"""

import argparse
import itertools
import json
import platform
import statistics
import time
from pathlib import Path

import nextstat
import nextstat.torch as nt
import torch


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


def measure(name, model):
    losses = {
        "profiled nll": lambda s, x: nt.profiled_nll(s, x),
        "q0": lambda s, x: nt.q0(s, x),
        "expected significance": lambda s, x: nt.significance(s, x, asimov=True),
        "expected limit": lambda s, x: nt.upper_limit(s, x),
    }
    print(f"{name}: {model.n_params} parameters, {model.n_bins} bins")
    session, cold = (nt.DifferentiableSession(model, signal_of(model), warm_start=warm_start) for warm_start in (True, False))
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

    own = median(lambda: step(lambda x: x.sum()))
    print(f"  {'the network alone':28} {own:8.3f} ms")
    for what, loss in losses.items():
        both = [[median(lambda loss=loss, made=made: step(lambda x: loss(made, x)), 0.7) for made in (session, cold)] for _ in range(3)]
        whole, without = (statistics.median(column) for column in zip(*both, strict=True))
        print(f"  {'with ' + what:28} {whole:8.3f} ms, {whole - own:.3f} ms more; {without - own:.3f} ms more from the starting values")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, nextstat {nextstat.__version__}, Python {platform.python_version()}")
    measure("generated", small())
    published = arguments.data / "workspaces/atlas_tHu_fcnc.json"
    if published.is_file():
        measure("atlas_tHu_fcnc", nextstat.load_workspace(published))


if __name__ == "__main__":
    main()
