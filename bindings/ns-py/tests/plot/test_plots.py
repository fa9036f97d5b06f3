"""What holds for all figures: names are letters, and the package does without matplotlib."""

import subprocess
import sys

import nextstat
from nextstat import plot


def test_dollar_signs_in_names_are_letters(tmp_path):
    from nextstat.histograms import WorkspaceBuilder

    builder = WorkspaceBuilder()
    region = builder.channel("a $region$", data=[57, 63, 40])
    region.sample("$signal$^", [12, 11, 4]).normfactor("mu$_{$")
    region.sample("$back$_{", [50, 52, 38]).normsys("$scale_{$", 0.05).normsys("one $", 0.03).normsys("b $ c $ d_{", 0.1)
    model = builder.model(poi="mu$_{$", bounds={"mu$_{$": (0, 10)})
    fit, values = nextstat.fit(model), [0.0, 1.0, 2.0, 4.0]
    limit = nextstat.upper_limit(model, grid=values)
    drawn = [
        plot.pulls(fit),
        plot.correlation(fit, threshold=0.0),
        plot.ranking(nextstat.ranking(model)),
        plot.scan(nextstat.profile_scan(model, values)),
        plot.scan(nextstat.profile_scan(model, [[0, 1, 2], [-1, 0, 1]], parameter=("mu$_{$", "$scale_{$"))),
        plot.contours(nextstat.contours(model, ("mu$_{$", "$scale_{$"), [0.68])),
        plot.data_mc(nextstat.yields(model))[0],
        plot.brazil(limit),
        plot.limits([1.0, 2.0], [limit, limit]),
    ]
    for k, ax in enumerate(drawn):
        ax.figure.savefig(tmp_path / f"{k}.png")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_package_does_without_matplotlib():
    code = "import sys, nextstat; assert not {'matplotlib', 'mplhep', 'pyplot'} & set(sys.modules)"
    assert run(code).returncode == 0
    hidden = "import sys; sys.modules['matplotlib'] = None; import nextstat.plot"
    assert "nextstat.plot needs matplotlib and mplhep: `pip install 'nextstat-rs[plot]'`" in run(hidden).stderr
