"""What a terminal gets: the table of a result, and its JSON only if it is asked for."""

import json
import os
import subprocess
import sys

import pytest

pty = pytest.importorskip("pty")


def _at_terminal(folder, *arguments):
    """Standard output and standard error of the command, both a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "nextstat", *arguments]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        read = []
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # The other end is closed.
                break
            if not part:
                break
            read.append(part)
    os.close(ours)
    return process.returncode, b"".join(read).decode().replace("\r\n", "\n")


def test_a_terminal_gets_the_table(root):
    code, text = _at_terminal(root / "examples", "fit", "simple.json")
    assert code == 0 and "mu = 0.72 ± 0.56" in text and '"bestfit"' not in text


def test_a_terminal_gets_json_if_it_is_asked_for(root):
    _, text = _at_terminal(root / "examples", "fit", "simple.json", "--json", "--quiet")
    assert json.loads(text)["converged"] is True


def test_a_pipe_gets_json_and_no_table(root):
    command = [sys.executable, "-m", "nextstat", "fit", "simple.json"]
    done = subprocess.run(command, cwd=root / "examples", capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["converged"] is True and not done.stderr


def test_errors_are_coloured_at_a_terminal_only(root):
    code, text = _at_terminal(root / "examples", "fit", "absent.json")
    assert code == 2 and "\x1b[1;31merror:\x1b[0m" in text
    done = subprocess.run([sys.executable, "-m", "nextstat", "fit", "absent.json"], cwd=root / "examples", capture_output=True, text=True, check=False)
    assert "\x1b" not in done.stderr
