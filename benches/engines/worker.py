"""One procedure of one engine on one workspace, as JSON: worker.py ENGINE PROCEDURE WORKSPACE
SETTING. Run by the engine's own interpreter."""
import importlib
import json
import pathlib
import sys

MODULES = {"ns": "with_nextstat_0_10", "root": "with_root", "pyhf": "with_pyhf"}


def main(name, procedure, workspace, setting):
    setting = json.loads(setting)
    engine = importlib.import_module(MODULES[name]).Engine(pathlib.Path(workspace), setting["threads"])
    result = getattr(engine, procedure)(setting)
    print("\n" + json.dumps({"version": engine.version, "threads": engine.threads, **result}))


if __name__ == "__main__":
    main(*sys.argv[1:])
