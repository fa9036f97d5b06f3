"""The workflows of the examples, run by Snakemake and law; a shard is killed in each of them.

Each package is skipped where it is absent; `make test-cluster` installs them.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOYS = {"n_toys": 20_000, "n_shards": 3, "seed": 5}

# The command of this package, which kills the first attempt at the second shard in its middle.
COMMAND = """\
#!/bin/sh
case " $* " in
*" --shard 2/3 "*)
    if [ ! -e "{mark}" ]; then
        "{python}" -m nextstat "$@" &
        until [ -s shards/2.npy.part ]; do sleep 0.01; done
        kill -9 $!
        : >"{mark}"
        kill -9 $$
    fi ;;
esac
exec "{python}" -m nextstat "$@"
"""


@pytest.fixture
def environment(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "nextstat").write_text(COMMAND.format(mark=tmp_path / "killed", python=sys.executable))
    (tools / "nextstat").chmod(0o755)
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "LAW_HOME": str(tmp_path / "law-home"), "HOME": str(tmp_path)}


def workflow(name, tmp_path):
    """The folder of an example of the name of a package, in a copy."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"no {name}")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path / "examples" / name


def check(folder, command, environment):
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert Path(environment["HOME"], "killed").exists(), "no shard was killed"
    assert sorted(path.name for path in (folder / "shards").glob("*.npy")) == ["1.npy", "2.npy", "3.npy"]
    one = ["toys", "../shapes.json", "--n-toys", TOYS["n_toys"], "--seed", TOYS["seed"], "--output-file", "one.npy"]
    subprocess.run([sys.executable, "-m", "nextstat", *map(str, one)], cwd=folder, check=True)
    assert (folder / "toys.npy").read_bytes() == (folder / "one.npy").read_bytes()


def test_snakemake_makes_the_bytes_of_one_run(tmp_path, environment):
    folder = workflow("snakemake", tmp_path)
    settings = [f"{key}={value}" for key, value in TOYS.items()]
    check(folder, [sys.executable, "-m", "snakemake", "--cores", "2", "--config", *settings], environment)


def test_law_makes_the_bytes_of_one_run(tmp_path, environment):
    folder = workflow("law", tmp_path)
    settings = [word for key, value in TOYS.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    law = Path(sys.executable).parent / "law"
    environment["PYTHONPATH"] = f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    check(folder, [str(law), "run", "toys.MergedToys", "--workers", "2", *settings], environment)
