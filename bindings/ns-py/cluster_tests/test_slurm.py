"""`nextstat job --scheduler slurm` on a Slurm of one node, which these tests start themselves.

They are skipped where Slurm is absent. On Debian as root:

    apt-get install --no-install-recommends slurm-wlm munge
    make test-cluster

The daemons run as the user of the tests, who must be root: `slurmd` starts jobs as their users.
They have a folder, a key and ports of their own, and leave an installed cluster alone.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DAEMONS = ("munged", "slurmctld", "slurmd")

CONFIGURATION = """\
ClusterName=nextstat
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=defer,sched_interval=1,bf_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def on_path(daemon):
    return shutil.which(daemon, path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin{os.pathsep}/sbin")


def two_ports():
    with socket.socket() as first, socket.socket() as second:
        for each in (first, second):
            each.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]


def wait_for(is_true, what, seconds=120):
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """The environment of the commands of a Slurm with one node."""
    missing = [daemon for daemon in DAEMONS if on_path(daemon) is None]
    if missing:
        pytest.skip(f"no Slurm: {', '.join(missing)} (Debian: slurm-wlm, munge)")
    if os.geteuid() != 0:
        pytest.skip("slurmd needs root")
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    (folder / "slurm.conf").write_text(CONFIGURATION.format(host=socket.gethostname().partition(".")[0], ports=two_ports(), folder=folder))
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    munged = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
    commands = [
        [on_path("munged"), "--foreground", "--force", f"--socket={folder}/munge.socket", *munged],
        [on_path("slurmctld"), "-D", "-i"],
        [on_path("slurmd"), "-D"],
    ]
    daemons = []
    try:
        for command in commands:
            with (folder / "output.txt").open("a") as output:
                daemons.append(subprocess.Popen(command, env=environment, stdout=output, stderr=output))
            time.sleep(0.5)
        is_idle = lambda: "idle" in subprocess.run(["sinfo", "--noheader", "--format=%T"], env=environment, capture_output=True, text=True).stdout
        wait_for(is_idle, "idle node")
        yield environment
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait(30)


@pytest.fixture
def folder(tmp_path):
    """A folder with a name that means something to shells, and a workspace in it."""
    found = tmp_path / "it's $HOME and \"more\""
    found.mkdir()
    shutil.copy(ROOT / "examples/shapes.json", found)
    return found


def job(folder, slurm, n_toys, *options):
    """Submits a job of four shards, and returns the numbers of its array and its merge."""
    program = folder / "nextstat"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nextstat "$@"\n')
    program.chmod(0o755)
    toys = ["toys", "shapes.json", "--n-toys", n_toys, "--seed", "2", "--output-file", "toys.npy"]
    command = [sys.executable, "-m", "nextstat", "job", "--scheduler", "slurm", "--shards", "4", "--directory", "job"]
    command += ["--program", program, *options, *toys]
    line = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    said = subprocess.run(["sh", "-c", line], cwd=folder, env=slurm, check=True, capture_output=True, text=True).stdout
    return re.fullmatch(r"shards: job (\d+), merge: job (\d+)\n", said).groups()


def state(slurm, number):
    """The states of a job, or of the tasks of an array, and how often these were started again."""
    said = subprocess.run(["scontrol", "show", "job", number], env=slurm, capture_output=True, text=True).stdout
    return set(re.findall(r"JobState=(\S+)", said)), [int(n) for n in re.findall(r"Restarts=(\d+)", said)]


def wait_for_state(slurm, number, wanted):
    # Slurm waits two minutes before it starts a job again.
    wait_for(lambda: state(slurm, number)[0] == {wanted}, f"job {number} that is {wanted}", 300)


def check(folder, slurm, numbers, n_toys):
    for number in numbers:
        wait_for_state(slurm, number, "COMPLETED")
    one = ["toys", "shapes.json", "--n-toys", n_toys, "--seed", "2", "--output-file", "one.npy"]
    subprocess.run([sys.executable, "-m", "nextstat", *one], cwd=folder, check=True)
    assert (folder / "toys.npy").read_bytes() == (folder / "one.npy").read_bytes()


def test_an_array_makes_the_bytes_of_one_run(folder, slurm):
    numbers = job(folder, slurm, "400", "--directive", "--time=00:10:00", "--at-once", "2")
    check(folder, slurm, numbers, "400")


def test_a_killed_shard_continues(folder, slurm):
    n_toys = "80000"
    numbers = job(folder, slurm, n_toys)
    part = folder / "job/shard-2.npy.part"
    wait_for(lambda: part.exists() and part.stat().st_size > 10_000, "toys of the second shard")
    own = [path for path in Path("/proc").glob("[0-9]*") if is_shard(path, b"2/4")]
    assert own, "the second shard is not running"
    for path in own:
        os.kill(int(path.name), signal.SIGKILL)
    check(folder, slurm, numbers, n_toys)
    assert sorted(state(slurm, numbers[0])[1]) == [0, 0, 0, 1]


def is_shard(process, shard):
    """Whether a process computes a shard: not the shell that started it."""
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return shard in words and b"--resume" in words


def test_a_job_that_failed_continues_when_it_is_submitted_again(folder, slurm):
    n_toys = "80000"
    numbers = job(folder, slurm, n_toys)
    part = folder / "job/shard-1.npy.part"
    wait_for(lambda: part.exists() and part.stat().st_size > 10_000, "toys of the first shard")
    subprocess.run(["scancel", numbers[0]], env=slurm, check=True)
    # The merge of an array that was cancelled can never start, and is cancelled, too.
    for number in numbers:
        wait_for_state(slurm, number, "CANCELLED")
    done = part.stat().st_size
    numbers = job(folder, slurm, n_toys)
    assert done > 10_000
    check(folder, slurm, numbers, n_toys)
