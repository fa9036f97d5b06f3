"""The submit files of `nextstat job --scheduler htcondor`, read by HTCondor's own parser.

The package `htcondor` of PyPI has no daemons, so nothing is submitted here; that the scripts make
the bytes of one run is a test of the command.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A function that returns the settings of a submit file of a job."""
    monkeypatch.setenv("CONDOR_CONFIG", "/dev/null")
    htcondor = pytest.importorskip("htcondor2")
    command = [sys.executable, "-m", "nextstat", "job", "--scheduler", "htcondor", "--shards", "3", "--directory", str(tmp_path / "it's a job")]
    command += ["--directive", "request_memory = 2 GB", "--directive", '+JobFlavour = "longlunch"']
    command += ["toys", "simple.json", "--threads", "2", "--output-file", str(tmp_path / "toys.npy")]
    subprocess.run(command, cwd=ROOT / "examples", check=True, capture_output=True)
    return lambda name: htcondor.Submit((tmp_path / "it's a job" / name).read_text())


def test_htcondor_reads_the_submit_file_of_a_shard(job):
    shard = job("shard.sub")
    shard["shard"] = "2"
    wanted = {
        "executable": "shard.sh", "arguments": "2", "error": "shard-2.log", "log": "job.log",
        "request_cpus": "2", "request_memory": "2 GB", "MY.JobFlavour": '"longlunch"', "should_transfer_files": "IF_NEEDED",
    }
    assert {key: shard.expand(key) for key in wanted} == wanted
    assert not shard.getQArgs()


def test_htcondor_reads_the_submit_file_of_the_merge(job):
    merge = job("merge.sub")
    assert (merge.expand("executable"), merge.expand("request_cpus"), merge.expand("error")) == ("merge.sh", "1", "merge.log")
