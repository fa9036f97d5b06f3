#!/usr/bin/env python3
"""What pyhf's command prints for our examples: the reference for commands that write workspaces, patches and digests byte by byte.

    python testdata/commands/generate.py --pyhf pyhf          (pyhf 0.7.6; run it anywhere)

Writes beside itself the workspaces `partner.json`, `rival.json` and `spelling.json`, cases.json with the commands and what is compared of
them, and in pyhf/ one file per case with what pyhf printed. Each case is a list of commands; the output of one is the input of the next.
"""
import argparse, copy, datetime, json, pathlib, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
SHAPES, SIMPLE, BACKGROUND, SIGNALS = (f"examples/{name}.json" for name in ("shapes", "simple", "background", "signals"))
PARTNER, RIVAL, SPELLING = (f"testdata/commands/{name}.json" for name in ("partner", "rival", "spelling"))


def whole(value):
    """The same numbers, whole ones spelt without a point: equal to Python, written otherwise."""
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def modifier(name, kind, data=None):
    return {"name": name, "type": kind, "data": data}


def partner():
    """Goes with shapes.json in an outer join: one channel in both, one of its own, and other settings in the same measurement."""
    shapes = json.loads((ROOT / SHAPES).read_text())
    control = whole(next(c for c in shapes["channels"] if c["name"] == "control_region"))
    samples = [{"name": "zjets", "data": [12, 7.5], "modifiers": [modifier("theory_zjets", "normsys", {"lo": 0.8, "hi": 1.25})]}]
    observed = whole(next(o for o in shapes["observations"] if o["name"] == "control_region"))
    settings = [{"name": "theory_zjets", "fixed": True}, whole(next(p for p in shapes["measurements"][0]["config"]["parameters"] if p["name"] == "mu"))]
    return {"version": "1.0.0", "channels": [{"name": "validation_region", "samples": samples}, control],
            "observations": [{"name": "validation_region", "data": [11, 9]}, observed],
            "measurements": [{"name": "search", "config": {"poi": "mu", "parameters": settings}}, {"name": "norm", "config": {"poi": "norm_ttbar", "parameters": []}}]}


def rival():
    """Differs from shapes.json wherever it has the same names."""
    shapes = json.loads((ROOT / SHAPES).read_text())
    signal = copy.deepcopy(next(c for c in shapes["channels"] if c["name"] == "signal_region"))
    signal["samples"] = [s for s in signal["samples"] if s["name"] in ("signal", "wjets")]
    signal["samples"][0]["data"] = [1.0, 2.0, 3.0, 4.0]
    signal["samples"].insert(0, {"name": "diboson", "data": [1.5, 1.25, 0.75, 0.5], "modifiers": [modifier("mu", "normfactor")]})
    return {"channels": [signal, {"name": "top_region", "samples": [{"name": "ttbar", "data": [40.0], "modifiers": []}]}],
            "observations": [{"name": "top_region", "data": [44.0]}, {"name": "signal_region", "data": [70.0, 50.0, 30.0, 10.0]}],
            "measurements": [{"name": "search", "config": {"poi": "norm_ttbar", "parameters": []}}], "version": "1.0.0"}


# Numbers and names as people and programs spell them, nothing in order.
SPELLING_TEXT = r'''{"version": "1.0.0", "observations": [{"name": "\u03bcμ/region", "data": [1E3, 1e-5, 123456789012345678901234, 7]},
 {"data": [0.1], "name": "Zone \"7\"\t"}],
"measurements": [{"config": {"parameters": [{"sigmas": [1.70e-2], "name": "lumi", "inits": [1], "bounds": [[0.5, 1.5e0]], "auxdata": [1.0]},
 {"fixed": false, "name": "beta"}], "poi": ""}, "name": "second"}, {"name": "First", "config": {"poi": "α", "parameters": []}}],
"channels": [{"samples": [{"name": "b", "data": [1e16, 12345678.9e-13, 1e22, 0.30000000000000004], "modifiers": [
  {"type": "normsys", "name": "beta", "data": {"lo": 9e-1, "hi": 1}}, {"type": "histosys", "name": "beta",
   "data": {"lo_data": [1, 2, 3, 4.0], "hi_data": [1.0, 2.50, 3, -0.0]}}, {"type": "lumi", "name": "lumi", "data": null},
  {"type": "shapefactor", "name": "Beta", "data": null}]}, {"name": "😀", "data": [5e-324, 1.7976931348623157e308, 2, 1], "modifiers": [
  {"type": "normfactor", "name": "α", "data": null}]}, {"name": "B", "data": [1, 1, 1, 1], "modifiers": []}], "name": "μμ/region"},
 {"name": "Zone \"7\"\t", "samples": [{"modifiers": [{"type": "staterror", "name": "stat", "data": [1]}], "data": [4], "name": "b"}]}]}
'''

# Name of the case, what is compared (bytes: standard output; values: what pyhf writes is in ours, numbers nearly), commands.
CASES = [
    ("sort", "bytes", [["sort", SHAPES]]),
    ("sort_spelling", "bytes", [["sort", SPELLING]]),
    ("sort_stdin", "bytes", [["rename", SIMPLE], ["sort"]]),
    ("combine", "bytes", [["combine", SIMPLE, SHAPES]]),
    ("combine_stdin", "bytes", [["prune", SHAPES, "-c", "control_region"], ["combine", "-", SIMPLE, "--no-merge-channels"]]),
    ("combine_stdin_second", "bytes", [["sort", SIMPLE], ["combine", BACKGROUND, "--join", "none"]]),
    ("combine_outer", "bytes", [["combine", "-j", "outer", SHAPES, PARTNER]]),
    ("combine_outer_merged", "bytes", [["combine", "--join", "outer", "--merge-channels", BACKGROUND, PARTNER]]),
    ("combine_left_outer", "bytes", [["combine", "-j", "left outer", SHAPES, RIVAL]]),
    ("combine_left_outer_merged", "bytes", [["combine", "-j", "left outer", "--merge-channels", SHAPES, RIVAL]]),
    ("combine_right_outer", "bytes", [["combine", "-j", "right outer", SHAPES, RIVAL]]),
    ("combine_right_outer_merged", "bytes", [["combine", "-j", "right outer", "--merge-channels", SHAPES, RIVAL]]),
    ("prune_channel", "bytes", [["prune", SHAPES, "-c", "control_region"]]),
    ("prune_sample", "bytes", [["prune", "--sample", "signal", "-s", "fakes", SHAPES]]),
    ("prune_modifier", "bytes", [["prune", SHAPES, "-m", "jet_energy_scale", "--modifier", "lumi"]]),
    ("prune_modifier_type", "bytes", [["prune", SHAPES, "-t", "staterror", "--modifier-type", "lumi"]]),
    ("prune_measurement", "bytes", [["prune", PARTNER, "--measurement", "norm"]]),
    ("prune_nothing", "bytes", [["prune", SPELLING]]),
    ("rename_channel", "bytes", [["rename", SHAPES, "-c", "control_region", "CR", "--channel", "signal_region", "SR"]]),
    ("rename_sample", "bytes", [["rename", SHAPES, "-s", "ttbar", "wjets", "--sample", "wjets", "ttbar"]]),
    ("rename_modifier", "bytes", [["rename", SHAPES, "-m", "mu", "signal strength μ", "--modifier", "theory_ttbar", "theory_wjets"]]),
    ("rename_measurement", "bytes", [["rename", PARTNER, "--measurement", "norm", "search2"]]),
    ("pipeline", "bytes", [["rename", SIMPLE, "-m", "mu", "mu_simple", "--measurement", "Measurement", "simple"],
                           ["combine", "-", SHAPES], ["prune", "-s", "fakes", "-"], ["sort", "-"]]),
    ("pipeline_digest", "bytes", [["sort", SHAPES], ["digest", "-a", "md5", "-a", "sha256", "-a", "md5"]]),
    ("digest_json", "bytes", [["digest", SPELLING, "-j", "-p", "--json"]]),
    ("patchset_extract", "bytes", [["patchset", "extract", SIGNALS, "--name", "signal_500"]]),
    ("patchset_extract_with_metadata", "bytes", [["patchset", "extract", "--with-metadata", "--name", "signal_300", SIGNALS]]),
    ("patchset_apply", "bytes", [["patchset", "apply", BACKGROUND, SIGNALS, "--name", "signal_800"]]),
    ("patchset_apply_stdin", "bytes", [["patchset", "apply", "-", SIGNALS, "--name", "signal_300"], ["prune", "-c", "control_region"]]),
    ("inspect", "values", [["inspect", SHAPES, "--output-file", "OUTPUT"]]),
    ("fit", "values", [["fit", SIMPLE, "--value", "--backend", "numpy", "--optimizer", "scipy", "--optconf", "maxiter=1000"]]),
    ("fit_patch", "values", [["fit", "--measurement", "search", "-p", "examples/signal.json", BACKGROUND]]),
    ("cls", "values", [["cls", SHAPES, "--test-poi", "1.5", "--test-stat", "q", "--calctype", "asymptotics", "--backend", "np"]]),
]


def run(pyhf, commands, first_stdin):
    """Standard output of the last command, or the file that it writes to OUTPUT."""
    text = first_stdin
    for command in commands:
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "output.json"
            arguments = [str(output) if word == "OUTPUT" else word for word in command]
            text = subprocess.run([pyhf, *arguments], cwd=ROOT, input=text, capture_output=True, text=True, check=True, encoding="utf-8").stdout
            if output.exists():
                text = output.read_text()
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pyhf", default="pyhf")
    pyhf = parser.parse_args().pyhf
    (ROOT / PARTNER).write_text(json.dumps(partner(), indent=1) + "\n")
    (ROOT / RIVAL).write_text(json.dumps(rival(), indent=1) + "\n")
    (ROOT / SPELLING).write_text(SPELLING_TEXT, encoding="utf-8")
    cases = []
    for name, compare, commands in CASES:
        stdin = (ROOT / BACKGROUND).read_text() if commands[0][:3] == ["patchset", "apply", "-"] else ""
        text = run(pyhf, commands, stdin)
        (HERE / "pyhf" / f"{name}.txt").write_text(text, encoding="utf-8")
        cases.append({"name": name, "compare": compare, "stdin": BACKGROUND if stdin else None, "commands": commands})
        print(name, len(text), file=sys.stderr)
    version = subprocess.run([pyhf, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    certificate = {"tool": version, "command": "python testdata/commands/generate.py --pyhf pyhf", "date": datetime.date.today().isoformat()}
    (HERE / "cases.json").write_text(json.dumps({"certificate": certificate, "cases": cases}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
