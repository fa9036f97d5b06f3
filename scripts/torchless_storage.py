#!/usr/bin/env python3
"""Compares the forms in which encoders of torchless store their weights: memory, time, accuracy.

Needs PyTorch, transformers, safetensors, weaver-core, onnx and onnxruntime from PyPI, and the
package of bindings/torchless-py. Models have random weights: a Particle Transformer, a BERT of 23
million weights for texts of 64 tokens, and a ViT of 6 million for images of 224 by 224.

Every time is the least of several rounds in which all forms and ONNX Runtime take turns at each
batch, one thread each. Jets are cut to the longest of a batch. Memory is what a process of its own
has more after the model was opened and has computed than before. Differences are those of logits
from PyTorch's in double precision.
"""

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

FORMS = ("f32", "f16", "bf16", "int8")


def resident():
    """Return the bytes of this process that are in memory."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


class Runner:
    """A model in one of the forms, or in ONNX Runtime."""

    def __init__(self, folder, how):
        self.how = how
        if how == "onnxruntime":
            import onnxruntime

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            path = str(folder / "model.onnx")
            self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        else:
            import torchless

            self.model = torchless.Encoder(folder, weights=how)

    def __call__(self, inputs, batch):
        """Return the logits of all events, `batch` at a time."""
        n_events = len(next(iter(inputs.values())))
        mask = next((name for name in ("mask", "attention_mask") if name in inputs), None)
        parts = []
        for first in range(0, n_events, batch):
            part = {key: value[first : first + batch] for key, value in inputs.items()}
            if self.how == "onnxruntime":
                if mask == "mask":
                    # Jets are cut to the longest of a batch, as those of torchless are to their
                    # own.
                    longest = int(part["mask"].sum(-1).max())
                    part = {key: value[:, :, :longest] for key, value in part.items()}
                parts.append(self.session.run(["logits"], part)[0])
            else:
                parts.append(self.model.encode(part, events_at_once=batch, mask=mask)["logits"])
        return np.concatenate(parts)


def memory(args):
    """Print what one model adds to this process."""
    inputs = dict(np.load(args.folder / "inputs.npz"))
    if args.how == "onnxruntime":
        import onnxruntime  # noqa: F401
    else:
        import torchless  # noqa: F401
    gc.collect()
    before = resident()
    model = Runner(args.folder, args.how)
    few = {key: value[:4] for key, value in inputs.items()}
    model(few, 1)
    one = resident() - before
    model({key: value[:64] for key, value in inputs.items()}, 64)
    many = resident() - before
    kept = 0 if args.how == "onnxruntime" else model.model.weight_bytes
    print(json.dumps({"weights": kept, "1": one, "64": many}))


def models():
    """Yield names, PyTorch's models, configurations of weaver-core's, and inputs."""
    import transformers
    from torchless_checkpoints import hugging_face, images, texts
    from torchless_encoders import jets, particle_transformer

    config = {"input_dim": 17, "num_classes": 10}
    yield "ParT", particle_transformer(**config), config, jets(64, 17)
    bert = transformers.BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, num_labels=5,
        attn_implementation="eager",
    )  # fmt: skip
    inputs = texts(64, 64, 30_522)
    inputs["attention_mask"][:] = 1
    yield "BERT", hugging_face("BertForSequenceClassification", bert), None, inputs
    vit = transformers.ViTConfig(
        hidden_size=192, num_hidden_layers=12, num_attention_heads=3, intermediate_size=768, num_labels=5,
        attn_implementation="eager",
    )  # fmt: skip
    yield "ViT", hugging_face("ViTForImageClassification", vit), None, images(64, (3, 224, 224))


def write(folder, name, model, config, inputs):
    """Write a model as safetensors and as ONNX, and its inputs."""
    import torch
    from safetensors.torch import save_file
    from torchless_encoders import export, export_jets

    np.savez(folder / "inputs.npz", **inputs)
    if name == "ParT":
        save_file({key: value.contiguous() for key, value in model.state_dict().items()}, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps({"model_type": "particle_transformer", **config}))
        return export_jets(model, inputs, folder / "model.onnx")
    model.save_pretrained(folder)
    names = list(inputs)

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *given):
            return self.model(**dict(zip(names, given))).logits

    axes = {key: {0: "batch"} for key in [*names, "logits"]}
    examples = [torch.tensor(value[:2]) for value in inputs.values()]
    # Evaluation: the exporter leaves the mode of what it is given behind.
    return export(Logits().eval(), examples, folder / "model.onnx", (names, ["logits"]), 17, axes)


def reference_logits(name, model, inputs):
    """Return logits in double precision."""
    from torchless_checkpoints import reference
    from torchless_encoders import reference_of_jets

    if name == "ParT":
        return reference_of_jets(model, inputs)
    return np.array([answer["logits"] for answer in reference(model, inputs)])


def least_times(runners, inputs, batch, rounds):
    """Return milliseconds of an event: all take turns at each batch, and the least of it counts."""
    firsts = range(0, 16 if batch == 1 else 64, batch)
    least = {how: np.full(len(firsts), np.inf) for how in runners}
    for _ in range(rounds):
        for place, first in enumerate(firsts):
            part = {key: value[first : first + batch] for key, value in inputs.items()}
            for how, runner in runners.items():
                start = time.perf_counter()
                runner(part, batch)
                least[how][place] = min(least[how][place], time.perf_counter() - start)
    return {how: times.sum() / len(firsts) / batch * 1e3 for how, times in least.items()}


def compare(args):
    """Print a row of each model and form."""
    import torch

    torch.set_num_threads(1)
    print(f"{'model':<6}{'form':<12}{'weights':>9}{'memory':>9}{'of 64':>9}{'1 event':>10}{'of 64':>10}{'|difference|':>15}")
    for name, model, config, inputs in models():
        if args.only and name not in args.only:
            continue
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            write(folder, name, model, config, inputs)
            expected = reference_logits(name, model, {key: value[: args.events] for key, value in inputs.items()})
            runners = {how: Runner(folder, how) for how in (*FORMS, "onnxruntime")}
            times = {batch: least_times(runners, inputs, batch, args.rounds) for batch in (1, 64)}
            few = {key: value[: args.events] for key, value in inputs.items()}
            for how, runner in runners.items():
                child = [sys.executable, __file__, "memory", "--how", how, "--folder", str(folder)]
                used = json.loads(subprocess.run(child, check=True, capture_output=True, text=True).stdout)
                kept, one, many = (used[key] / 1e6 for key in ("weights", "1", "64"))
                difference = abs(runner(few, 1) - expected).max()
                best = [times[batch][how] for batch in (1, 64)]
                print(
                    f"{name:<6}{how:<12}{kept:>6.1f} MB{one:>6.1f} MB{many:>6.1f} MB{best[0]:>7.2f} ms{best[1]:>7.2f} ms{difference:>15.1e}",
                    flush=True,
                )
            print(f"{name}: logits reach {abs(expected).max():.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["compare", "memory"], nargs="?", default="compare")
    parser.add_argument("--how", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--events", type=int, default=64, help="events that are compared with PyTorch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="ParT, BERT, ViT")
    args = parser.parse_args()
    {"compare": compare, "memory": memory}[args.what](args)


if __name__ == "__main__":
    sys.exit(main())
