"""What the tests of the package share: the repository's folders, and a folder with the examples to
work in.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def examples_folder(tmp_path, monkeypatch):
    """The working directory: a folder of its own with a copy of the examples, so that tests and
    pages may write beside them.
    """
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def root():
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def published():
    """Published likelihoods with their references; tests that need them are skipped where they are
    absent.
    """
    folder = Path(os.environ.get("NEXTSTAT_DATA", ROOT / "../shared/data")).resolve()
    if not (folder / "cases.json").is_file():
        pytest.skip(f"no published workspaces in {folder}")
    return folder


@pytest.fixture(scope="session")
def search_path(tmp_path_factory):
    """A search path on which `nextstat` is the command of this package and `python` runs it."""
    tools = tmp_path_factory.mktemp("bin")
    for name, arguments in {"nextstat": "-m nextstat", "python": ""}.items():
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        (tools / name).chmod(0o755)
    return f"{tools}{os.pathsep}{os.environ['PATH']}"
