"""Makes a model that joins published analyses, and measures a fit and a scan of signals with it.

    python benches/joint_model.py --data DIR --nextstat PATH [--signals N] [--work FOLDER]

DIR holds the workspaces that `make data` fetches. Every parameter but the luminosity belongs to one
analysis, and the samples of their own parameters of interest are left out; a signal is a random
part of the square root of the expected background in every bin. The time of a signal is the
difference of the processor times with N signals and with one, over N - 1. One of the analyses has a
normsys that multiplies a yield several times, so that every signal is searched with.
"""

import argparse
import json
import pathlib
import random
import resource
import subprocess
import tempfile

ANALYSES = [
    "atlas_1lbb.json.zst",
    "atlas_3l_rjr.json",
    "atlas_sbottom_regionA.json",
    "atlas_tHu_fcnc.json",
    "atlas_tttt.json",
    "atlas_ttz_3l.json",
    "atlas_3l_offshell.json",
    "atlas_4l.json",
    "atlas_jets0l_GGd1.json",
    "atlas_ss3l_rpc2l0b.json",
]


def plain(path):
    """Returns the document at `path`, which `zstd` unpacks if need be."""
    if path.suffix == ".zst":
        return json.loads(subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout)
    return json.loads(path.read_bytes())


def add(joint, document, prefix):
    """Adds the background of an analysis, with `prefix` in front of its names."""
    config = document["measurements"][0]["config"]
    names = set()
    observed = {entry["name"]: entry["data"] for entry in document["observations"]}
    for channel in document["channels"]:
        modifiers = [{modifier["name"] for modifier in sample["modifiers"]} for sample in channel["samples"]]
        samples = [s for s, used in zip(channel["samples"], modifiers, strict=True) if config["poi"] not in used]
        if not samples:
            continue
        for modifier in (modifier for sample in samples for modifier in sample["modifiers"]):
            if modifier["type"] != "lumi":
                modifier["name"] = prefix + modifier["name"]
            names.add(modifier["name"])
        name = prefix + channel["name"]
        joint["channels"].append({"name": name, "samples": samples})
        joint["observations"].append({"name": name, "data": observed[channel["name"]]})
    settings = joint["measurements"][0]["config"]["parameters"]
    for setting in config["parameters"]:
        name = setting["name"] if setting["name"] == "lumi" else prefix + setting["name"]
        if name in names and all(known["name"] != name for known in settings):
            settings.append({**setting, "name": name})


def joint_model(data):
    """Returns the workspace of all analyses."""
    config = {"poi": "mu", "parameters": []}
    joint = {"channels": [], "observations": [], "version": "1.0.0"}
    joint["measurements"] = [{"name": "joint", "config": config}]
    for k, name in enumerate(ANALYSES):
        add(joint, plain(data / name), f"a{k}_")
    return joint


def signals(joint, n):
    """Returns the events of `n` signals in every channel."""
    draw = random.Random(7)
    sizes = [draw.uniform(0.0, 0.4) for _ in range(n)]

    def rows(channel):
        expected = [sum(bin_) for bin_ in zip(*(sample["data"] for sample in channel["samples"]), strict=True)]
        return [[size * draw.random() * max(total, 0.1) ** 0.5 for total in expected] for size in sizes]

    return {channel["name"]: rows(channel) for channel in joint["channels"]}


def seconds(command):
    """Returns the processor time of `command`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--nextstat", required=True)
    parser.add_argument("--signals", type=int, default=0)
    parser.add_argument("--work", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = arguments.work or pathlib.Path(folder)
        joint = joint_model(arguments.data)
        (work / "joint.json").write_text(json.dumps(joint))
        fit = seconds([arguments.nextstat, "fit", work / "joint.json", "--poi", "none", "--threads", "1"])
        print(f"a fit: {fit:.1f} s of processor time")
        if arguments.signals < 2:
            return
        times = {}
        for n in (1, arguments.signals):
            (work / "signals.json").write_text(json.dumps(signals(joint, n)))
            command = [arguments.nextstat, "signal-scan", work / "joint.json", "--signals", work / "signals.json"]
            times[n] = seconds([*command, "--strength", "mu", "--explore", "no", "--threads", "1", "--json"])
            print(f"{n} signals: {times[n]:.1f} s of processor time")
        print(f"a signal: {1e3 * (times[arguments.signals] - times[1]) / (arguments.signals - 1):.0f} ms")


if __name__ == "__main__":
    main()
