"""Brazil bands: CLs against the parameter of interest, observed and expected."""

from collections import namedtuple

import numpy as np

__all__ = ["BrazilBandCollection", "plot_brazil_band", "plot_cls_components", "plot_results"]


def __dir__():
    return __all__


#: The artists of a plot; None for those that were not drawn.
BrazilBandCollection = namedtuple("BrazilBandCollection", "cls_obs cls_exp one_sigma_band two_sigma_band test_size clsb clb axes")


def plot_brazil_band(test_pois, cls_obs, cls_exp, test_size, ax, **kwargs):
    """Draws the observed CLs, the five expected ones with their bands, and a line at `test_size`.

    Returns
    -------
    The artists: observed line, expected lines, ±1σ band, ±2σ band, line at the test size.
    """
    color = kwargs.pop("color", "black")
    (observed,) = ax.plot(test_pois, cls_obs, color=color, label=r"$\mathrm{CL}_{s}$")
    expected = []
    for which, values in enumerate(cls_exp):
        is_median = which == 2
        label = r"$\mathrm{CL}_{s,\mathrm{exp}}$" if is_median else None
        expected += ax.plot(test_pois, values, color=color, linestyle="dashed" if is_median else "dotted", label=label)
    wide = ax.fill_between(test_pois, cls_exp[0], cls_exp[4], facecolor="yellow", label=r"$\pm2\sigma$ $\mathrm{CL}_{s,\mathrm{exp}}$")
    narrow = ax.fill_between(test_pois, cls_exp[1], cls_exp[3], facecolor="green", label=r"$\pm1\sigma$ $\mathrm{CL}_{s,\mathrm{exp}}$")
    (level,) = ax.plot(
        test_pois,
        [test_size] * len(test_pois),
        color=kwargs.pop("test_size_color", "red"),
        linestyle=kwargs.pop("test_size_linestyle", "solid"),
        label=rf"$\alpha={test_size}$",
    )
    return observed, expected, narrow, wide, level


def plot_cls_components(test_pois, tail_probs, ax, **kwargs):
    """Draws the observed CLsb and CLb; returns their lines, None for one that `no_clsb` or `no_clb`
    leaves out.
    """
    linewidth = kwargs.pop("linewidth", 2)
    lines = []
    for which, (name, color, label) in enumerate((("clsb", "red", r"$\mathrm{CL}_{s+b}$"), ("clb", "blue", r"$\mathrm{CL}_{b}$"))):
        color = kwargs.pop(f"{name}_color", color)
        if kwargs.pop(f"no_{name}", False):
            lines.append(None)
            continue
        lines += ax.plot(test_pois, np.array([float(np.asarray(pair[which]).reshape(())) for pair in tail_probs]), color=color, linewidth=linewidth, label=label)
    return tuple(lines)


def plot_results(test_pois, tests, test_size=0.05, ax=None, **kwargs):
    """Draws a series of hypothesis tests, as `hypotest` returns them with
    ``return_expected_set=True``.

    Parameters
    ----------
    components : bool
        Also draw CLsb and CLb; the tests then need ``return_tail_probs=True``.
    no_cls : bool
        Leave out CLs and its band.

    Returns
    -------
    BrazilBandCollection
    """
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.gca()
    has_components, leaves_out_cls = kwargs.pop("components", False), kwargs.pop("no_cls", False)
    if has_components and len(tests[0]) != 3:
        raise ValueError(f"The components of 'tests' should have len of 3 to visualize the CLs components but have len {len(tests[0])}: [CLs_obs, [CLsb, CLb], [CLs_exp band]]")
    x_label, y_label = kwargs.pop("xlabel", r"$\mu$ (POI)"), kwargs.pop("ylabel", r"$\mathrm{CL}_{s}$")
    observed = np.array([float(np.asarray(test[0]).reshape(())) for test in tests])
    expected = np.array([[float(np.asarray(value).reshape(())) for value in test[-1]] for test in tests]).T
    artists = (None,) * 5 if leaves_out_cls else plot_brazil_band(test_pois, observed, list(expected), test_size, ax, **kwargs)
    components = plot_cls_components(test_pois, [test[1] for test in tests], ax, **kwargs) if has_components else (None, None)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.set_ylim(test_size * 0.1 if ax.get_yscale() == "log" else 0, 1)
    _legend(ax)
    return BrazilBandCollection(*artists, *components, ax)


def _legend(ax):
    """Returns a legend with lines of observed values first, then the expected ones, the bands and
    the level.
    """
    order = ["exp", "pm1", "pm2", "alpha"]
    entries = list(zip(*ax.get_legend_handles_labels()))

    def place(entry):
        label = entry[1]
        # The bands' labels have `exp` in them too.
        return max((i + 1 for i, part in enumerate(order) if part in label), default=0)

    entries.sort(key=place)
    ax.legend([handle for handle, _ in entries], [label for _, label in entries], loc="best")
