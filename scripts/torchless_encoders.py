#!/usr/bin/env python3
"""Makes the encoders that torchless is tested with, and compares it with PyTorch and ONNX Runtime.

Needs PyTorch, weaver-core, onnx, onnxscript and onnxruntime from PyPI, and for `latency` the
package of bindings/torchless-py. `accuracy` needs PyTorch (1.13 suffices), weaver-core without its
dependencies, and safetensors.

  fixtures   write small random models and their outputs in double precision into
             torchless/tests/encoders
  accuracy   compare a whole Particle Transformer (or a --small one), from ONNX and from
             safetensors, with PyTorch in double precision, and its bits for other batches, orders,
             paddings and numbers of threads; exit status 1 if a logit differs by more than 1e-5, or
             a bit
  speed      compare with ONNX Runtime, one thread each, batches of 1 to 64 in turn
  latency    measure calls of one event of a small model in Python, and those of ONNX Runtime
"""

import argparse
import inspect
import json
import subprocess
import sys
import tempfile
import time
import timeit
import types
import warnings
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "torchless" / "tests" / "encoders"
MOST_PARTICLES = 128
MOST_DIFFERENCE = 1e-5
# Jets of one length that the reference computes together: memory of pairs grows with them.
JETS_AT_ONCE = 16


def randomise(model, seed):
    """Give every parameter and every stored statistic a value that matters."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)):
            module.running_mean.normal_(generator=generator)
            module.running_var.uniform_(0.5, 2, generator=generator)
        if isinstance(module, (torch.nn.BatchNorm1d, torch.nn.LayerNorm)):
            module.weight.data.uniform_(0.5, 1.5, generator=generator)
            module.bias.data.normal_(0, 0.1, generator=generator)
        if isinstance(module, torch.nn.Linear):
            module.weight.data += 0.05 * torch.randn(module.weight.shape, generator=generator)
            if module.bias is not None:
                module.bias.data += 0.1 * torch.randn(module.bias.shape, generator=generator)
    return model.eval()


def particle_transformer(seed=1, **options):
    """Return a random Particle Transformer that answers with logits."""
    if not hasattr(torch, "_dynamo"):
        # weaver-core excludes a function from a compiler that PyTorch 1 does not have.
        torch._dynamo = types.SimpleNamespace(disable=lambda function: function)
    from weaver.nn.model.ParticleTransformer import ParticleTransformer

    torch.manual_seed(seed)
    model = ParticleTransformer(for_inference=True, **options)
    # Exportable, and without the softmax at its end.
    model.for_inference = False
    for module in model.modules():
        # Without a value it is the precision's: another one in the reference.
        if type(module).__name__ == "RMSNorm" and module.eps is None:
            module.eps = torch.finfo(torch.float32).eps
    return randomise(model, seed)


def jets(n_jets, n_features, n_places=MOST_PARTICLES, seed=3):
    """Return jets of 1 to `n_places` particles: features, momenta and a mask, padded with zeros."""
    random = np.random.default_rng(seed)
    x = np.zeros((n_jets, n_features, n_places), np.float32)
    v = np.zeros((n_jets, 4, n_places), np.float32)
    mask = np.zeros((n_jets, 1, n_places), bool)
    for jet, n in enumerate(random.integers(1, n_places + 1, n_jets)):
        pt = np.sort(random.exponential(20, n) + 0.5)[::-1]
        eta = random.uniform(-1.5, 1.5) + random.normal(0, 0.2, n)
        phi = random.uniform(-np.pi, np.pi) + random.normal(0, 0.2, n)
        mass = np.where(random.random(n) < 0.5, 0, 0.1396)
        px, py, pz = pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta)
        v[jet, :, :n] = [px, py, pz, np.sqrt(px**2 + py**2 + pz**2 + mass**2)]
        x[jet, :, :n] = random.normal(0, 1, (n_features, n))
        x[jet, 0, :n] = np.log(pt)
        mask[jet, 0, :n] = True
    return {"x": x, "v": v, "mask": mask}


def angle(graph, y, x):
    """Add the angle of (x, y): the arctangent of y / x, and π more or less on the left."""
    constant = lambda value: graph.op("Constant", value_t=torch.tensor(value))
    right = graph.op("Atan", graph.op("Div", y, x))
    left = [graph.op(operator, right, constant(np.pi)) for operator in ("Add", "Sub")]
    left = graph.op("Where", graph.op("Greater", y, constant(0.0)), *left)
    return graph.op("Where", graph.op("Less", x, constant(0.0)), left, right)


def export(model, inputs, path, names, opset, axes):
    """Write a model as ONNX with the exporter of traced graphs."""
    traced = {"dynamo": False}
    if "dynamo" not in inspect.signature(torch.onnx.export).parameters:
        # PyTorch 1 has no other exporter, and does not export angles; these are as in PyTorch 2.
        traced = {}
        torch.onnx.register_custom_op_symbolic("aten::atan2", angle, 9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            tuple(inputs),
            str(path),
            **traced,
            opset_version=opset,
            input_names=names[0],
            output_names=names[1],
            dynamic_axes=axes,
        )


def export_jets(model, inputs, path, opset=17):
    """Write a Particle Transformer as ONNX."""
    axes = {name: {0: "batch", 2: "particles"} for name in ("x", "v", "mask")}
    first = [torch.tensor(inputs[name][:2]) for name in ("x", "v", "mask")]
    export(model, first, path, (["x", "v", "mask"], ["logits"]), opset, axes | {"logits": {0: "batch"}})


def write_checkpoint(model, config, folder):
    """Write a Particle Transformer as safetensors: the state dict, and its arguments."""
    from safetensors.torch import save_file

    folder.mkdir(exist_ok=True)
    save_file({key: value.contiguous() for key, value in model.state_dict().items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "particle_transformer", **config}, indent=2) + "\n")


def reference_of_jets(model, inputs):
    """Return logits in double precision, computed without padding: jets of one length together."""
    model = model.double()
    lengths = inputs["mask"][:, 0].sum(1)
    logits = [None] * len(lengths)
    with torch.no_grad():
        for n in np.unique(lengths):
            of_length = np.flatnonzero(lengths == n)
            for first in range(0, len(of_length), JETS_AT_ONCE):
                some = of_length[first : first + JETS_AT_ONCE]
                x, v, mask = (torch.tensor(inputs[name][some, :, :n]) for name in ("x", "v", "mask"))
                for jet, answer in zip(some, model(x.double(), v.double(), mask).numpy()):
                    logits[jet] = answer
    model.float()
    return np.array(logits)


class TextEncoder(torch.nn.Module):
    """Embeddings, post-norm blocks with a key mask, and a pooled answer, as in BERT."""

    def __init__(self, vocabulary=30, width=16, activation="gelu"):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, width)
        self.places = torch.nn.Embedding(32, width)
        self.norm = torch.nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (torch.nn.Linear(width, width) for _ in range(4))
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.pooler, self.answer = torch.nn.Linear(width, width), torch.nn.Linear(width, 2)
        self.activation = torch.nn.GELU() if activation == "gelu" else torch.nn.GELU(approximate="tanh")

    def forward(self, ids, mask):
        x = self.norm(self.tokens(ids) + self.places(torch.arange(ids.shape[1])))
        heads = lambda y: y.view(y.shape[0], y.shape[1], 4, -1).transpose(1, 2)
        q, k, v = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        scores = q @ k.transpose(-1, -2) / k.shape[-1] ** 0.5
        scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
        x = self.norm(x + self.out(mixed))
        x = self.norm(x + self.down(self.activation(self.up(x))))
        return self.answer(torch.tanh(self.pooler(x[:, 0])))


class ImageEncoder(torch.nn.Module):
    """Patches of an image, a class token, pre-norm blocks with gates, and a mean, as in ViT."""

    def __init__(self, width=16):
        super().__init__()
        self.patches = torch.nn.Conv2d(3, width, 4, stride=4)
        self.token = torch.nn.Parameter(torch.randn(1, 1, width))
        self.block = torch.nn.TransformerEncoderLayer(width, 2, 32, batch_first=True, norm_first=True)
        self.gate, self.up, self.down = (torch.nn.Linear(width, width, bias=False) for _ in range(3))
        self.answer = torch.nn.Linear(width, 3)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        x = self.block(x)
        x = x + self.down(torch.nn.functional.silu(self.gate(x)) * self.up(x))
        return self.answer(x.mean(1)).log_softmax(-1)


def fixtures(_):
    """Write the models of the tests."""
    torch.manual_seed(7)
    FIXTURES.mkdir(exist_ok=True)
    write_small(
        "mlp",
        torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)),
        {"x": np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)},
        13,
    )
    random = np.random.default_rng(2)
    ids = random.integers(0, 30, (4, 12))
    mask = np.arange(12) < np.array([[12], [7], [1], [9]])
    for opset, activation in ((13, "gelu"), (17, "tanh"), (20, "tanh")):
        write_small(f"text{opset}", TextEncoder(activation=activation), {"ids": ids, "mask": mask}, opset, sequence=True)
    write_small("image", ImageEncoder(), {"image": random.normal(size=(3, 3, 8, 12)).astype(np.float32)}, 17)
    small = dict(input_dim=5, num_classes=3, embed_dims=(16, 16), pair_embed_dims=(8,), num_heads=2, num_layers=2, num_cls_layers=1)
    inputs = jets(12, 5, 20)
    for name, version in (("part", 1), ("part3", 3)):
        model = particle_transformer(**small, version=version)
        export_jets(model, inputs, FIXTURES / f"{name}.onnx")
        np.savez(FIXTURES / f"{name}.npz", **inputs, logits=reference_of_jets(model, inputs))


def write_small(name, model, inputs, opset, sequence=False):
    """Write one model, its inputs and its outputs in double precision."""
    torch.manual_seed(7)
    model = randomise(model, 7)
    tensors = [torch.tensor(value) for value in inputs.values()]
    axes = {key: {0: "batch"} | ({1: "length"} if sequence else {}) for key in inputs}
    export(model, tensors, FIXTURES / f"{name}.onnx", (list(inputs), ["logits"]), opset, axes | {"logits": {0: "batch"}})
    doubles = [tensor.double() if tensor.is_floating_point() else tensor for tensor in tensors]
    with torch.no_grad():
        logits = model.double()(*doubles).numpy()
    np.savez(FIXTURES / f"{name}.npz", **inputs, logits=logits)


def encode(binary, model, inputs, folder, *options):
    """Run the command, and return the logits and the seconds that it computed for."""
    np.savez(folder / "in.npz", **inputs)
    command = [binary, "encode", str(model), "--inputs", str(folder / "in.npz"), "--output", str(folder / "out.npy")]
    answer = subprocess.run([*command, "--json", *options], check=True, capture_output=True, text=True)
    return np.load(folder / "out.npy"), json.loads(answer.stdout)["seconds"]


# The Particle Transformer of the paper, and one that computes ten times less.
WHOLE = {"input_dim": 17, "num_classes": 10}
SMALL = {**WHOLE, "embed_dims": [32, 64, 32], "pair_embed_dims": [16, 16], "num_heads": 4, "num_layers": 4}


def whole_model(folder, config=WHOLE):
    """Return a Particle Transformer with random weights, and its file."""
    model = particle_transformer(**config)
    export_jets(model, jets(2, 17), folder / "part.onnx")
    return model, folder / "part.onnx"


def accuracy(args):
    """Compare with PyTorch, and bits with bits."""
    torch.set_num_threads(1)
    is_good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = SMALL if args.small else WHOLE
        model, path = whole_model(folder, config)
        write_checkpoint(model, config, folder / "weights")
        inputs = jets(args.events, 17)
        expected = reference_of_jets(model, inputs)
        print(f"{args.events} jets, {sum(value.numel() for value in model.parameters())} weights, logits reach {abs(expected).max():.2f}")
        for what, file in (("safetensors", folder / "weights"), ("ONNX", path)):
            found, _ = encode(args.bin, file, inputs, folder, "--mask", "mask")
            differences = abs(found - expected)
            # A difference that is no number is no small one.
            is_good &= bool(differences.max() <= MOST_DIFFERENCE)
            print(f"{what}: logits differ by {differences.max():.2e} at most, {differences.mean():.1e} on average", flush=True)
        few = {key: value[:200] for key, value in inputs.items()}
        order = np.random.default_rng(5).permutation(len(few["x"]))
        shuffled = {key: value[order] for key, value in few.items()}
        longer = {key: np.pad(value, ((0, 0), (0, 0), (0, 9))) for key, value in few.items()}
        runs = {
            "one at a time": encode(args.bin, path, few, folder, "--mask", "mask", "--batch", "1")[0],
            "two threads": encode(args.bin, path, few, folder, "--mask", "mask", "--threads", "2")[0],
            "another order": encode(args.bin, path, shuffled, folder, "--mask", "mask")[0][np.argsort(order)],
            "with padding": encode(args.bin, path, few, folder)[0],
            "with more padding": encode(args.bin, path, longer, folder)[0],
        }
        for what, logits in runs.items():
            n_different = (logits.view(np.uint32) != found[:200].view(np.uint32)).sum()
            is_good &= bool(n_different == 0)
            print(f"{what}: {n_different} of {logits.size} differ")
    return 0 if is_good else 1


def speed(args):
    """Measure both in turn, batch by batch."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _, path = whole_model(folder)
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        events = jets(args.events, 17)
        for batch in (1, 4, 16, 64):
            times = {"onnxruntime": [], "padded": [], "ragged": []}
            for _ in range(3):
                start = time.perf_counter()
                for first in range(0, args.events, batch):
                    chunk = {key: value[first : first + batch] for key, value in events.items()}
                    longest = int(chunk["mask"].sum(-1).max())
                    session.run(None, {key: value[:, :, :longest] for key, value in chunk.items()})
                times["onnxruntime"].append(time.perf_counter() - start)
                for how in ("padded", "ragged"):
                    extra = ["--mask", "mask"] if how == "ragged" else []
                    one = ["--threads", "1", "--batch", str(batch)]
                    times[how].append(encode(args.bin, path, events, folder, *one, *extra)[1])
            best = {how: min(values) / args.events * 1e3 for how, values in times.items()}
            print(
                f"batch {batch:>2}: "
                + ", ".join(f"{how} {ms:.2f} ms" for how, ms in best.items())
                + f"; ragged is {best['onnxruntime'] / best['ragged']:.2f} times as fast"
            )


def latency(_):
    """Measure calls of one event, for which little is computed."""
    import onnxruntime
    import torchless

    path, x = FIXTURES / "mlp.onnx", np.array([[0.5, -1.0, 2.0]], np.float32)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    model = torchless.Encoder(path)
    dense, raw = [("x", x)], model._raw
    calls = {
        "Encoder.encode": lambda: model.encode({"x": x}),
        "of that the extension module": lambda: raw.encode(dense, [], None, 16, 1),
        "ONNX Runtime": lambda: session.run(None, {"x": x}),
    }
    for what, call in calls.items():
        print(f"{what} {min(timeit.repeat(call, number=20_000, repeat=7)) / 20_000 * 1e9:.0f} ns")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["fixtures", "accuracy", "speed", "latency"])
    parser.add_argument("--bin", default=str(ROOT / "target" / "release" / "torchless"))
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--small", action="store_true", help="accuracy of a smaller model")
    args = parser.parse_args()
    return {"fixtures": fixtures, "accuracy": accuracy, "speed": speed, "latency": latency}[args.what](args)


if __name__ == "__main__":
    sys.exit(main())
