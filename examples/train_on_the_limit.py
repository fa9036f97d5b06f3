"""A network trained on cross-entropy, and one trained on the expected limit, on events with a
systematic uncertainty.

python train_on_the_limit.py [--seeds 5] [--steps 400] [--plot FILE] [--json FILE]

Events have two features. The first tells signal from background well, but it is not known where
the background lies along it; the second tells less, and is known. Cross-entropy knows nothing of
that and uses both as they come. The expected limit is computed from histograms of the network's
output, with the background's shift as a histosys, so its gradient knows what the shift costs. Needs
PyTorch; figures need matplotlib.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import nextstat
import torch
from nextstat.torch import DifferentiableSession, ExpectedLimit, soft_histogram, upper_limit

N_BINS, N_SIGNAL, N_BACKGROUND = 6, 60.0, 1200.0
EDGES = torch.linspace(0, 1, N_BINS + 1, dtype=torch.float64)
# How far the background moves along the first feature at one standard deviation.
SHIFT = torch.tensor([1.0, 0.0], dtype=torch.float64)


def events(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Signal and background (n × 2 each)."""
    random = torch.Generator().manual_seed(seed)
    draw = torch.randn((2, n, 2), generator=random, dtype=torch.float64)
    return draw[0] * 0.8 + torch.tensor([1.5, 0.9], dtype=torch.float64), draw[1] - torch.tensor([0.3, 0.3], dtype=torch.float64)


def network(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)]
    return torch.nn.Sequential(*layers).double()


def session() -> DifferentiableSession:
    """One channel: a signal of strength mu, and a background with a shape uncertainty; all four
    histograms are inputs."""
    flat = [N_BACKGROUND / N_BINS] * N_BINS
    signal = {"name": "signal", "data": [N_SIGNAL / N_BINS] * N_BINS, "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]}
    shift = {"name": "shift", "type": "histosys", "data": {"hi_data": flat, "lo_data": flat}}
    model = nextstat.model_of(
        {
            "channels": [{"name": "channel", "samples": [signal, {"name": "background", "data": flat, "modifiers": [shift]}]}],
            "observations": [{"name": "channel", "data": flat}],
            "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
            "version": "1.0.0",
        }
    )
    # Nothing is observed yet: Asimov data are made at the nominal values.
    return DifferentiableSession(model, ["signal", "background"], variations=True, asimov="nominal")


def templates(scores: dict[str, torch.Tensor], histogram) -> dict[str, torch.Tensor]:
    """The histograms of the scores, by the names of the session's blocks. A hundredth of an event
    in each bin keeps none of them empty."""
    yields = {"signal": N_SIGNAL, "background": N_BACKGROUND, "background/shift/hi": N_BACKGROUND, "background/shift/lo": N_BACKGROUND}
    return {f"channel/{name}": histogram(scores[name]) * (total / len(scores[name])) + 0.01 for name, total in yields.items()}


def scores(net: torch.nn.Module, signal: torch.Tensor, background: torch.Tensor) -> dict[str, torch.Tensor]:
    """The network's output between 0 and 1: of the signal, and of the background where it is and
    moved either way."""
    moved = {"signal": signal, "background": background, "background/shift/hi": background + SHIFT, "background/shift/lo": background - SHIFT}
    return {name: torch.sigmoid(net(events)).squeeze(1) for name, events in moved.items()}


def train(loss_of: str, seed: int, steps: int) -> torch.nn.Module:
    net = network(seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    expected_limit = ExpectedLimit(session())
    for step in range(steps):
        optimizer.zero_grad()
        # New events at every step: a limit knows nothing of their number, and would follow the
        # fluctuations of a sample that it sees again and again.
        signal, background = events(2000, 10_000 * seed + step)
        # The first quarter is the same for both: it spreads the output over the bins, without which
        # some seeds end in a poor minimum.
        if loss_of == "cross-entropy" or step < steps // 4:
            output = net(torch.cat([signal, background])).squeeze(1)
            truth = torch.cat([torch.ones(len(signal)), torch.zeros(len(background))]).double()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(output, truth)
        else:
            filled = templates(scores(net, signal, background), lambda x: soft_histogram(x, EDGES, bandwidth=0.04))
            loss = expected_limit(filled)
        loss.backward()
        optimizer.step()
    return net


def evaluate(net: torch.nn.Module) -> float:
    """The expected limit with plain histograms of events that neither network has seen.

    Bins are of equal width, or of equally many events, whichever serves the network better.
    """
    with torch.no_grad():
        found = scores(net, *events(200_000, 99))
        everything = torch.cat([found["signal"], found["background"]])
        quantiles = torch.quantile(everything[::8], torch.linspace(0, 1, N_BINS + 1, dtype=torch.float64)[1:-1])
        limits = []
        for inner in (EDGES[1:-1], quantiles):
            counts = lambda x, inner=inner: torch.bincount(torch.bucketize(x, inner), minlength=N_BINS).double()  # noqa: E731
            limits.append(upper_limit(session(), templates(found, counts)).item())
    return min(limits)


def plot(limits: dict[str, list[float]], nets: dict[str, torch.nn.Module], file: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for name, values in limits.items():
        axes[0].plot(range(1, len(values) + 1), values, "o", label=name)
    axes[0].set(xlabel="seed", ylabel="expected limit on μ", ylim=(0, 1.2 * max(map(max, limits.values()))), xticks=range(1, 1 + max(map(len, limits.values()))))
    axes[0].legend(loc="lower right")
    grid = torch.linspace(-3, 4, 120, dtype=torch.float64)
    first, second = torch.meshgrid(grid, grid, indexing="xy")
    signal, background = events(250, 99)
    for axis, (name, net) in zip(axes[1:], nets.items(), strict=True):
        with torch.no_grad():
            level = torch.sigmoid(net(torch.stack([first.ravel(), second.ravel()], 1))).reshape(first.shape)
        axis.contourf(first, second, level, levels=EDGES.tolist(), cmap="Blues", alpha=0.8)
        axis.scatter(*background.T, s=3, color="black", label="background")
        axis.scatter(*signal.T, s=3, color="tab:red", label="signal")
        axis.annotate("", (1.8, -2.5), (-1.8, -2.5), arrowprops={"arrowstyle": "<->"})
        axis.text(0, -2.3, "uncertain", ha="center")
        axis.set(title=f"trained on the {name}" if name != "cross-entropy" else "trained on cross-entropy", xlabel="first feature", ylabel="second feature")
        axis.set(xlim=(-3, 4), ylim=(-3, 4))
    axes[1].legend(loc="upper left")
    figure.savefig(file, dpi=110)


def main(arguments: list[str] | None = None) -> dict[str, list[float]]:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)  # Tensors are small.
    limits: dict[str, list[float]] = {"cross-entropy": [], "expected limit": []}
    nets = {}
    for seed in range(1, given.seeds + 1):
        for name, found in limits.items():
            nets[name] = train(name, seed, given.steps)
            found.append(evaluate(nets[name]))
        print(f"seed {seed}: " + ", ".join(f"{name} {found[-1]:.4f}" for name, found in limits.items()))
    for name, found in limits.items():
        spread = statistics.stdev(found) if len(found) > 1 else 0.0
        print(f"trained on {name}: expected limit {statistics.mean(found):.4f} ± {spread:.4f}")
    if given.plot:
        plot(limits, nets, given.plot)
    if given.json:
        given.json.write_text(json.dumps(limits))
    return limits


if __name__ == "__main__":
    main()
