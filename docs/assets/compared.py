"""Draws the page that shows our figures beside those of cabinetry, of the same model.

    python docs/assets/compared.py --cabinetry PYTHON    # with the extra `plot`, and Pillow

PYTHON is a Python that has cabinetry 0.6 with pyhf and iminuit. It draws in a process of its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs/assets/compared"
EDGES = [0, 50, 100, 200, 400]
REGION = "signal_region"
# Dots per inch of pictures that are read on a page, and their colours.
DPI, COLOURS = 90, 48


def workspace():
    """Returns the example without its shape factors, at whose bounds cabinetry's ranking stops."""
    found = json.loads((ROOT / "examples/shapes.json").read_text("utf-8"))
    for channel in found["channels"]:
        for sample in channel["samples"]:
            sample["modifiers"] = [one for one in sample["modifiers"] if one["type"] != "shapefactor"]
    return found


def of_cabinetry(folder):
    """Draws the figures of cabinetry; run by its Python."""
    import cabinetry
    import matplotlib
    import numpy as np

    matplotlib.use("agg")
    model, data = cabinetry.model_utils.model_and_data(workspace())
    fit = cabinetry.fit.fit(model, data)
    ranking = cabinetry.fit.ranking(model, data, fit_results=fit)
    scan = cabinetry.fit.scan(model, data, "mu", par_range=(0.0, 4.2), n_steps=15)
    limit = cabinetry.fit.limit(model, data)
    before, after = cabinetry.model_utils.prediction(model), cabinetry.model_utils.prediction(model, fit_results=fit)
    config = {"Regions": [{"Name": REGION, "Variable": "m", "Binning": EDGES}]}

    def region(prediction, name=REGION, **options):
        drawn = cabinetry.visualize.data_mc(prediction, data, channels=name, save_figure=False, close_figure=False, **options)
        return drawn[0]["figure"]

    def templates():
        at = np.tile(model.config.suggested_init(), (3, 1))
        at[1:, model.config.par_names.index("jet_energy_scale")] = 1.0, -1.0
        nominal, up, down = (np.asarray(model.expected_actualdata(point))[model.config.channel_slices[REGION]] for point in at)
        histograms = [{"yields": values, "stdev": np.zeros(4)} for values in (nominal, up, down)]
        return cabinetry.visualize.plot_model.templates(histograms[0], histograms[1], histograms[2], {}, {}, np.array(EDGES), "m", close_figure=False)

    once = {"save_figure": False, "close_figure": False}
    figures = {
        "pulls": lambda: cabinetry.visualize.pulls(fit, **once),
        "correlation": lambda: cabinetry.visualize.correlation_matrix(fit, pruning_threshold=0.2, **once),
        "ranking": lambda: cabinetry.visualize.ranking(ranking, max_pars=10, **once),
        "scan": lambda: cabinetry.visualize.scan(scan, **once),
        "prefit": lambda: region(before, config=config),
        "postfit": lambda: region(after, config=config),
        "logarithmic": lambda: region(after, "control_region", log_scale=True),
        "limit": lambda: cabinetry.visualize.limit(limit, **once),
        "templates": templates,
    }
    for name, draw in figures.items():
        draw().savefig(folder / f"{name}.png", dpi=DPI, bbox_inches="tight")


def of_nextstat(folder):
    """Draws our figures."""
    import matplotlib

    matplotlib.use("agg")
    import nextstat
    import numpy
    from nextstat import plot

    model = nextstat.model_of(workspace())
    fit, yields = nextstat.fit(model), nextstat.yields(model)
    background = nextstat.fit(model, fixed={"mu": 0.0})
    examples = ROOT / "examples"
    signals = {mass: {"patchset": examples / "signals.json", "patch_name": f"signal_{mass}"} for mass in (300, 500, 800)}
    limits = [nextstat.upper_limit(nextstat.load_workspace(examples / "background.json", **patch)) for patch in signals.values()]
    grid = nextstat.every_patch(examples / "background.json", examples / "plane.json", nextstat.hypotest)
    region = {"edges": {REGION: EDGES}, "signal": "signal", "xlabel": "m [GeV]"}
    toys = nextstat.hypotest_toys(model, 3.0, n_toys=1000, seed=1)
    figures = {
        "pulls": lambda: plot.pulls(fit),
        "pulls_several": lambda: plot.pulls({"B-only": background, "S+B": fit}, groups={"Theory": "theory_*"}),
        "correlation": lambda: plot.correlation(fit),
        "ranking": lambda: plot.ranking(nextstat.ranking(model), top=10),
        "scan": lambda: plot.scan(nextstat.profile_scan(model, points=15)),
        "map": lambda: plot.scan(nextstat.profile_scan(model, parameter=("mu", "norm_ttbar"), points=15)),
        "contours": lambda: plot.contours(nextstat.contours(model, ("mu", "norm_ttbar"))),
        "prefit": lambda: plot.data_mc(yields, REGION, fit="prefit", **region)[0],
        "postfit": lambda: plot.data_mc(yields, REGION, **region)[0],
        "logarithmic": lambda: plot.data_mc(yields, "control_region", log=True)[0],
        "regions": lambda: plot.regions(yields, signal="signal")[0],
        "limit": lambda: plot.brazil([nextstat.hypotest(model, mu) for mu in numpy.linspace(0, 5, 41)], nextstat.upper_limit(model)),
        "limits": lambda: plot.limits(list(signals), limits, xlabel="m [GeV]"),
        "exclusion": lambda: plot.exclusion(nextstat.exclusion(grid, "m_gluino", "m_lsp")),
        "toys": lambda: plot.toys(toys),
        "templates": lambda: plot.variations(model, REGION, "jet_energy_scale", edges=EDGES, xlabel="m [GeV]")[0],
        "gof": lambda: plot.gof(nextstat.goodness_of_fit(model)),
    }
    for name, draw in figures.items():
        draw().figure.savefig(folder / f"{name}.png", dpi=DPI)


def shrunk(path, wanted):
    """Writes a picture with few colours."""
    from PIL import Image

    with Image.open(path) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(wanted, optimize=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--cabinetry", metavar="PYTHON", help="a Python that has cabinetry")
    parser.add_argument("--draw", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.draw:
        of_cabinetry(arguments.draw)
        return
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        ours = Path(work, "nextstat")
        ours.mkdir()
        of_nextstat(ours)
        folders = [ours]
        if arguments.cabinetry:
            theirs = Path(work, "cabinetry")
            theirs.mkdir()
            subprocess.run([arguments.cabinetry, Path(__file__).resolve(), "--draw", theirs], check=True, cwd=work)
            folders.append(theirs)
        for folder in folders:
            for path in sorted(folder.glob("*.png")):
                shrunk(path, PICTURES / f"{path.stem}-{folder.name}.png")


if __name__ == "__main__":
    sys.exit(main())
