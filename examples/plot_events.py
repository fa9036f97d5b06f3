#!/usr/bin/env python3
"""Draw what events_to_fit.py made: the histograms before the fit, and the same with the fit's
yields, data on both; one SVG.

    nextstat report workspace.json --quiet | python3 examples/plot_events.py --write events.svg

Standard library only. Outermost bins are open; a logarithmic axis shows that the signal is where
the ratio is large.
"""
import argparse
import json
import math
import sys

from events_to_fit import EDGES

WIDTH, HEIGHT, LEFT, TOP, BELOW = 340, 250, 46, 40, 56
COLOURS = {"background": "#8fb3d9", "signal": "#d9822b"}
LOWEST, HIGHEST = 0.5, 400.0


def y_of(value):
    share = math.log(max(value, LOWEST) / LOWEST) / math.log(HIGHEST / LOWEST)
    return TOP + HEIGHT * (1 - min(share, 1.0))


def text(x, y, words, size=12, anchor="middle", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{extra}>{words}</text>'


def frame(left, title, n_bins):
    """Axes of one panel."""
    bottom, step = TOP + HEIGHT, WIDTH / n_bins
    yield f'<rect x="{left}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#444"/>'
    yield text(left + WIDTH / 2, TOP - 12, title, 13)
    for value in (1, 10, 100):
        yield f'<line x1="{left - 4}" x2="{left}" y1="{y_of(value):.1f}" y2="{y_of(value):.1f}" stroke="#444"/>'
        yield text(left - 7, y_of(value) + 4, value, 11, "end")
    for index, edge in enumerate(EDGES[1:-1], start=1):
        yield text(left + index * step, bottom + 15, f"{edge:g}".replace("-", "−"), 10)
    yield text(left + WIDTH / 2, bottom + 34, "log p(event | signal) − log p(event | background)")


def panel(left, title, samples, uncertainty, data):
    """Stacked samples, the band of the uncertainty, and the data with √n."""
    n_bins, bottom = len(data), TOP + HEIGHT
    step, below = WIDTH / n_bins, [0.0] * n_bins
    for name in ("background", "signal"):
        for index, value in enumerate(samples[name]):
            high, low = y_of(below[index] + value), y_of(below[index]) if below[index] > LOWEST else bottom
            yield f'<rect x="{left + index * step:.1f}" y="{high:.1f}" width="{step:.1f}" height="{max(low - high, 0):.1f}" fill="{COLOURS[name]}"/>'
            below[index] += value
    for index, (total, width) in enumerate(zip(below, uncertainty)):
        high, low = y_of(total + width), y_of(total - width)
        yield f'<rect x="{left + index * step:.1f}" y="{high:.1f}" width="{step:.1f}" height="{low - high:.1f}" fill="#000" opacity="0.25"/>'
    for index, count in enumerate(data):
        x = left + (index + 0.5) * step
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y_of(count + math.sqrt(count)):.1f}" y2="{y_of(count - math.sqrt(count)):.1f}" stroke="#000"/>'
        yield f'<circle cx="{x:.1f}" cy="{y_of(count):.1f}" r="3"/>'
    yield from frame(left, title, n_bins)


def legend(x, y):
    for name, colour in COLOURS.items():
        yield f'<rect x="{x}" y="{y - 9}" width="11" height="11" fill="{colour}"/>' + text(x + 16, y, name, 11, "start")
        y += 16
    yield f'<circle cx="{x + 5}" cy="{y - 4}" r="3"/>' + text(x + 16, y, "data", 11, "start")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", required=True)
    arguments = parser.parse_args()
    report = json.load(sys.stdin)
    (yields,), fit = report["yields"], report["fit"]
    lines = []
    mu = fit["poi"]
    titles = {"prefit": "before the fit, μ = 1", "postfit": f"after it, μ̂ = {mu['bestfit']:.2f} ± {mu['uncertainty']:.2f}"}
    for index, (moment, title) in enumerate(titles.items()):
        samples = {sample["sample"]: sample["yields"] for sample in yields[moment]["samples"]}
        total = yields[moment]["total"]
        lines += panel(LEFT + index * (WIDTH + 60), title, samples, total["uncertainties"], yields["data"])
    lines += legend(LEFT + WIDTH - 96, TOP + 20)
    width, height = LEFT + 2 * WIDTH + 60 + 16, TOP + HEIGHT + BELOW
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif">'
    with open(arguments.write, "w", encoding="utf-8") as file:
        file.write("\n".join([head, f'<rect width="{width}" height="{height}" fill="#fff"/>', *lines, "</svg>"]) + "\n")


if __name__ == "__main__":
    main()
