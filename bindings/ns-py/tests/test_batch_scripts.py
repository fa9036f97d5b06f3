"""The batch scripts of the page on clusters, run without a batch system."""

import os
import re
import subprocess
import sys

import pytest


def blocks(root, page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (root / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def command(examples_folder, monkeypatch):
    """A `nextstat` on the path: that of this package."""
    tools = examples_folder / "bin"
    tools.mkdir()
    (tools / "nextstat").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nextstat "$@"\n')
    (tools / "nextstat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    return examples_folder


def check_merged(folder):
    """The merged file, against one run."""
    run = "nextstat toys merge toys-*.npy --output-file toys.npy"
    subprocess.run(run, shell=True, check=True, cwd=folder)
    one = "nextstat toys examples/shapes.json --n-toys 4000 --seed 1 --parameter mu --output-file one.npy"
    subprocess.run(one, shell=True, check=True, cwd=folder)
    assert (folder / "toys.npy").read_bytes() == (folder / "one.npy").read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="a shell script")
def test_jobs_of_this_package_run_its_command(command):
    job = ["nextstat", "job", "--scheduler", "local", "--shards", "3", "--directory", "job"]
    toys = ["toys", "examples/shapes.json", "--n-toys", "4000", "--seed", "1", "--parameter", "mu", "--output-file", "toys.npy"]
    line = subprocess.run([*job, *toys], check=True, cwd=command, capture_output=True, text=True).stdout
    assert line == "sh job/submit.sh\n"
    subprocess.run(line, shell=True, check=True, cwd=command)
    subprocess.run(["nextstat", *toys[:-1], "one.npy"], check=True, cwd=command)
    assert (command / "toys.npy").read_bytes() == (command / "one.npy").read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="a shell script")
def test_the_jobs_of_htcondor_make_the_parts_of_one_run(root, command):
    [script] = blocks(root, "how-to/cluster.md", "condor")
    settings = dict(re.split(r"\s+= ", line, maxsplit=1) for line in script.splitlines() if " = " in line)
    n_jobs = int(settings["n_jobs"])
    for process in range(n_jobs):
        arguments = settings["arguments"]
        for written, meant in {"$INT(shard)": str(process + 1), "$(n_jobs)": str(n_jobs), "shapes.json": "examples/shapes.json"}.items():
            arguments = arguments.replace(written, meant)
        subprocess.run(["nextstat", *arguments.split()], check=True, cwd=command)
    check_merged(command)
