"""The blocks (```` ```py ````) of the page on gradients that need PyTorch, and the example that
trains, in a short form.
"""

import importlib.util
import re

import pytest

torch = pytest.importorskip("torch")


def test_the_page_runs(root, examples_folder):
    for block in re.findall(r"^```py\n(.*?)^```", (root / "docs/how-to/differentiable.md").read_text("utf-8"), re.DOTALL | re.MULTILINE):
        exec(compile(block, "differentiable.md", "exec"), {"__name__": "page"})


def test_training_on_the_limit_ends_with_a_better_limit(root):
    specification = importlib.util.spec_from_file_location("train_on_the_limit", root / "examples/train_on_the_limit.py")
    example = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(example)
    limits = example.main(["--seeds", "2", "--steps", "150"])
    assert max(limits["expected limit"]) < min(limits["cross-entropy"])
