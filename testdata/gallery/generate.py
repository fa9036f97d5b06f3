#!/usr/bin/env python3
"""Write the gallery beside this file: workspaces that are broken in one way each, and some odd ones (works-*) that are not.

Standard library only. What the command says of each is a snapshot of crates/ns-cli/tests/gallery.rs.
"""
import copy
import gzip
import json
from pathlib import Path

HERE = Path(__file__).parent


def modifier(name, kind, data=None):
    return {"name": name, "type": kind, "data": data}


GOOD = {
    "channels": [
        {
            "name": "SR",
            "samples": [
                {"name": "signal", "data": [5.0, 6.5], "modifiers": [modifier("mu", "normfactor")]},
                {
                    "name": "background",
                    "data": [50.0, 60.0],
                    "modifiers": [
                        modifier("xs", "normsys", {"lo": 0.9, "hi": 1.1}),
                        modifier("jes", "histosys", {"lo_data": [48.0, 59.0], "hi_data": [52.0, 62.0]}),
                        modifier("method", "shapesys", [5.0, 6.0]),
                        modifier("mc", "staterror", [1.0, 1.5]),
                    ],
                },
            ],
        },
        {
            "name": "CR",
            "samples": [
                {"name": "background", "data": [500.0], "modifiers": [modifier("xs", "normsys", {"lo": 0.9, "hi": 1.1})]}
            ],
        },
    ],
    "observations": [{"name": "SR", "data": [57.0, 66.0]}, {"name": "CR", "data": [510.0]}],
    "measurements": [
        {
            "name": "m",
            "config": {"poi": "mu", "parameters": [{"name": "mu", "inits": [1.0], "bounds": [[0.0, 10.0]]}]},
        }
    ],
    "version": "1.0.0",
}
TEXT = json.dumps(GOOD, indent=1)
CASES = {}


def case(name, text):
    assert name not in CASES, name
    CASES[name] = text if isinstance(text, bytes) else text.encode("utf-8")


def changed(name, change):
    """The good workspace after `change` has had its way with it."""
    document = copy.deepcopy(GOOD)
    result = change(document)
    case(name, json.dumps(document if result is None else result, indent=1) + "\n")


def replaced(name, old, new):
    """The good workspace's text with one spelling exchanged for another."""
    assert old in TEXT, old
    case(name, TEXT.replace(old, new, 1))


def put(name, *path_and_value):
    """The good workspace with one value exchanged."""
    *path, key, value = path_and_value

    def change(document):
        for step in path:
            document = document[step]
        document[key] = value

    changed(name, change)


SIGNAL = ("channels", 0, "samples", 0)
BACKGROUND = ("channels", 0, "samples", 1)
CONTROL = ("channels", 1, "samples", 0)
XS, JES, METHOD, MC = (BACKGROUND + ("modifiers", i) for i in range(4))
CONFIG = ("measurements", 0, "config")
LUMI = modifier("lumi", "lumi")


def add(name, path, *values):
    def change(document):
        for step in path:
            document = document[step]
        document.extend(values)

    changed(name, change)


def not_json():
    case("empty-file", "")
    case("blank-file", " \n\n")
    case("xml", '<?xml version="1.0"?>\n<Combination OutputFilePrefix="x"/>\n')
    case("truncated", TEXT[: len(TEXT) // 2])
    case("truncated-gzip", gzip.compress(TEXT.encode(), mtime=0)[:-20])
    case("two-documents", TEXT + TEXT)
    case("not-utf8", TEXT.encode().replace(b"signal", b"sign\xff\xfel", 1))
    case("utf16", TEXT[:200].encode("utf-16"))
    replaced("nan", "6.5", "NaN")
    replaced("minus-infinity", '"lo": 0.9', '"lo": -Infinity')
    replaced("number-too-large", "6.5", "1e999")
    replaced("number-with-plus", "6.5", "+6.5")
    replaced("trailing-comma", "6.5\n", "6.5,\n")
    replaced("python-literals", "null", "None")
    replaced("single-quotes", '"SR"', "'SR'")
    replaced("comment", '"channels"', '// the channels\n"channels"')
    replaced("missing-comma", '"name": "SR",', '"name": "SR"')


def not_the_schema():
    replaced("duplicate-key", '"name": "SR"', '"name": "SR", "name": "SR2"')
    put("unknown-key", *SIGNAL, "colour", "red")
    put("string-for-number", *SIGNAL, "data", 1, "6.5")
    put("null-for-list", *SIGNAL, "data", None)
    put("true-for-number", *SIGNAL, "data", 0, True)
    put("number-for-list", "observations", 1, "data", 510)
    put("number-for-name", "channels", 0, "name", 7)
    put("wrong-version", "version", "2.0.0")
    changed("missing-version", lambda d: d.pop("version") and None)
    changed("missing-observations", lambda d: d.pop("observations") and None)
    changed("missing-modifiers", lambda d: d["channels"][0]["samples"][0].pop("modifiers") and None)
    changed("missing-histosys-side", lambda d: d["channels"][0]["samples"][1]["modifiers"][1]["data"].pop("lo_data") and None)
    put("unknown-modifier", *SIGNAL, "modifiers", 0, "type", "normfactr")
    put("unknown-modifier-far", *SIGNAL, "modifiers", 0, "type", "scale")
    put("normsys-as-list", *XS, "data", [0.9, 1.1])
    put("normfactor-with-data", *SIGNAL, "modifiers", 0, "data", {"val": 1, "low": 0, "high": 3})
    put("bounds-of-three", *CONFIG, "parameters", 0, "bounds", [[0, 1, 10]])
    put("fixed-as-number", *CONFIG, "parameters", 0, "fixed", 1)
    case("a-patch", json.dumps([{"op": "remove", "path": "/channels/0"}]))
    case("a-patch-set", json.dumps({"metadata": {}, "patches": [], "version": "1.0.0"}))
    case("an-hs3-document", json.dumps({"distributions": [], "metadata": {"hs3_version": "0.2"}}))
    case("a-model", json.dumps({"channels": GOOD["channels"]}))
    case("a-number", "3")
    case("a-list", "[1, 2]")


def not_a_model():
    put("no-channels", "channels", [])
    put("no-measurements", "measurements", [])
    put("no-samples", "channels", 0, "samples", [])
    put("no-bins", *CONTROL, "data", [])
    put("sample-length", *SIGNAL, "data", [5.0, 6.5, 7.0])
    put("observation-length", "observations", 0, "data", [57.0])
    put("histosys-length", *JES, "data", "hi_data", [52.0])
    put("shapesys-length", *METHOD, "data", [5.0, 6.0, 7.0])
    put("staterror-length", *MC, "data", [1.0])
    put("duplicate-channel", "channels", 1, "name", "SR")
    put("duplicate-sample", *BACKGROUND, "name", "signal")
    put("duplicate-modifier", *SIGNAL, "modifiers", [modifier("mu", "normfactor")] * 2)
    put("duplicate-observation", "observations", 1, "name", "SR")
    add("duplicate-measurement", ("measurements",), GOOD["measurements"][0])
    add("duplicate-setting", CONFIG + ("parameters",), {"name": "mu", "fixed": True})
    put("observation-of-another-name", "observations", 1, "name", "CRs")
    put("negative-observation", "observations", 0, "data", [57.0, -1.0])
    put("normsys-lo-zero", *XS, "data", "lo", 0.0)
    put("normsys-hi-negative", *XS, "data", "hi", -0.1)
    add("lumi-without-settings", SIGNAL + ("modifiers",), LUMI)
    add("lumi-misnamed", SIGNAL + ("modifiers",), modifier("luminosity", "lumi"))
    put("poi-unknown", *CONFIG, "poi", "signal_strength")
    put("poi-of-another-case", *CONFIG, "poi", "Mu")
    put("poi-a-vector", *CONFIG, "poi", "mc")
    add("shapesys-shared", SIGNAL + ("modifiers",), modifier("method", "shapesys", [0.1, 0.1]))
    add("name-of-two-kinds", CONTROL + ("modifiers",), modifier("mu", "normsys", {"lo": 0.9, "hi": 1.1}))
    changed("staterror-in-other-channels", staterror_in_other_channels)
    settings()
    shapefactor()
    changed("no-modifiers", without_modifiers)


def settings():
    mu = CONFIG + ("parameters", 0)
    put("setting-length", *mu, "inits", [1.0, 1.0])
    put("setting-reversed-bounds", *mu, "bounds", [[10.0, 0.0]])
    put("setting-without-meaning", *mu, "auxdata", [1.0])
    half = {"name": "lumi", "auxdata": [1.0], "inits": [1.0], "bounds": [[0.5, 1.5]]}

    def lumi(sigmas):
        def change(document):
            document["channels"][0]["samples"][0]["modifiers"].append(LUMI)
            document["measurements"][0]["config"]["parameters"].append({**half, **sigmas})

        return change

    changed("lumi-without-width", lumi({}))
    changed("lumi-of-zero-width", lumi({"sigmas": [0.0]}))


def shapefactor():
    def change(document):
        for channel in document["channels"]:
            channel["samples"][-1]["modifiers"].append(modifier("shape", "shapefactor"))

    changed("shapefactor-length", change)


def staterror_in_other_channels(document):
    document["channels"][0]["samples"][0]["modifiers"].append(modifier("mc", "staterror", [0.1, 0.1]))
    document["channels"][1]["samples"][0]["modifiers"].append(modifier("mc", "staterror", [3.0]))


def without_modifiers(document):
    for channel in document["channels"]:
        for sample in channel["samples"]:
            sample["modifiers"] = []
    document["measurements"][0]["config"] = {"poi": "", "parameters": []}


def not_a_fit():
    def bare(signal, background):
        def change(document):
            document["channels"][0]["samples"][0]["data"] = signal
            document["channels"][0]["samples"][1].update(data=background, modifiers=[])

        return change

    changed("negative-total", bare([1.0, 1.0], [50.0, -60.0]))
    changed("empty-bin-with-data", bare([5.0, 0.0], [50.0, 0.0]))
    put("control-characters-in-a-name", *CONFIG, "poi", "\u001b[31mmu\n")


def works():
    def huge(document):
        scale = lambda values: [value * 2e10 for value in values]
        for channel in document["channels"]:
            for sample in channel["samples"]:
                sample["data"] = scale(sample["data"])
                for m in sample["modifiers"]:
                    if m["type"] == "histosys":
                        m["data"] = {side: scale(values) for side, values in m["data"].items()}
                    elif m["type"] in ("shapesys", "staterror"):
                        m["data"] = scale(m["data"])
        for observation in document["observations"]:
            observation["data"] = scale(observation["data"])

    def huge_with_few_systematics(document):
        for channel in document["channels"]:
            for sample in channel["samples"]:
                sample["data"] = [value * 2e10 for value in sample["data"]]
                sample["modifiers"] = sample["modifiers"][:1]
        for observation in document["observations"]:
            observation["data"] = [value * 2e10 for value in observation["data"]]

    def one_bin(document):
        del document["channels"][0]
        del document["observations"][0]
        document["measurements"][0]["config"]["poi"] = "xs"
        document["measurements"][0]["config"]["parameters"] = []

    def background_only(document):
        del document["channels"][0]["samples"][0]
        document["measurements"][0]["config"] = {"poi": "", "parameters": []}

    def empty_bin(document):
        document["channels"][0]["samples"][0]["data"] = [5.0, 0.0]
        document["channels"][0]["samples"][1].update(data=[50.0, 0.0], modifiers=[])
        document["observations"][0]["data"] = [55.0, 0.0]

    # Systematics ten thousand times larger than the statistical uncertainty: the minimum is found, but not certified.
    changed("yields-of-1e12-with-systematics", huge)
    changed("works-1e12-yields", huge_with_few_systematics)
    changed("works-one-bin", one_bin)
    changed("works-without-poi", background_only)
    changed("works-empty-bin-without-data", empty_bin)
    put("works-empty-signal", *SIGNAL, "data", [0.0, 0.0])
    put("works-nothing-observed", "observations", [{"name": "SR", "data": [0, 0]}, {"name": "CR", "data": [0]}])
    put("works-fractional-counts", "observations", 0, "data", [57.25, 65.5])
    put("works-start-outside-bounds", *CONFIG, "parameters", 0, "inits", [50.0])
    put("works-zero-uncertainties", *METHOD, "data", [0.0, 6.0])
    put("works-staterror-zero", *MC, "data", [0.0, 0.0])
    replaced("works-byte-order-mark", "{", "\ufeff{")
    add("works-unused-observation", ("observations",), {"name": "VR", "data": [3.0]})
    add("works-unused-setting", CONFIG + ("parameters",), {"name": "nu", "inits": [1.0]})
    case("works-names-in-greek", TEXT.replace('"mu"', '"μ"').replace('"SR"', '"信号"'))


def main():
    for group in (not_json, not_the_schema, not_a_model, not_a_fit, works):
        group()
    for name, content in CASES.items():
        (HERE / f"{name}.json").write_bytes(content)


if __name__ == "__main__":
    main()
