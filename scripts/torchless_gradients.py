#!/usr/bin/env python3
"""Makes the gradients that those of torchless are tested with, and compares both.

Needs PyTorch, transformers, safetensors and weaver-core from PyPI; `accuracy` and `speed` need the
package of bindings/torchless-py, too.

  fixtures   write gradients of the models in torchless/tests/encoders by PyTorch's autograd in
             double precision; a model that is made again here must have the outputs of its file
  accuracy   compare gradients of a whole Particle Transformer with PyTorch on many jets
  speed      measure outputs and gradients of that model in both, one thread each, in turn
"""

import argparse
import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from torchless_encoders import FIXTURES, ImageEncoder, export, jets, particle_transformer, randomise

SMALL = {"input_dim": 5, "num_classes": 3, "embed_dims": (16, 16), "pair_embed_dims": (8,), "num_heads": 2, "num_layers": 2, "num_cls_layers": 1}  # fmt: skip


class Root(torch.autograd.Function):
    """The square root, whose derivative at 0 times a gradient of 0 is 0.

    PyTorch's is NaN: the distance of a particle from itself is √0, and its logarithm is clipped.
    """

    @staticmethod
    def forward(context, x):
        root = x.sqrt()
        context.save_for_backward(root)
        return root

    @staticmethod
    def backward(context, gradient):
        (root,) = context.saved_tensors
        return torch.where(gradient == 0, 0, gradient / (2 * root))


@contextlib.contextmanager
def roots_of_zero():
    """Take roots by `Root`."""
    of_module, of_tensor = torch.sqrt, torch.Tensor.sqrt

    def root(x):
        torch.Tensor.sqrt = of_tensor
        try:
            return Root.apply(x)
        finally:
            torch.Tensor.sqrt = root

    torch.sqrt = torch.Tensor.sqrt = root
    try:
        yield
    finally:
        torch.sqrt, torch.Tensor.sqrt = of_module, of_tensor


def gradients(model, inputs, names, cotangent):
    """Return outputs, and gradients of the sum of outputs times cotangents, in double precision."""
    tensors = {}
    for name, value in inputs.items():
        tensor = torch.tensor(value)
        tensors[name] = tensor.double() if tensor.is_floating_point() else tensor
    for name in names:
        tensors[name].requires_grad_()
    with roots_of_zero():
        output = model(**tensors)
        (output * torch.tensor(cotangent)).sum().backward()
    return output.detach().numpy(), {name: tensors[name].grad.numpy() for name in names}


def gradients_of_jets(model, inputs, cotangent):
    """Return logits and gradients, each jet alone and without padding; 0 for padding."""
    found = {name: np.zeros(inputs[name].shape) for name in ("x", "v")}
    logits = []
    call = lambda x, v, mask: model(x, v, mask)
    for jet, n in enumerate(inputs["mask"][:, 0].sum(1)):
        one = {name: inputs[name][jet : jet + 1, :, :n] for name in ("x", "v", "mask")}
        output, gradient = gradients(call, one, ("x", "v"), cotangent[jet : jet + 1])
        logits.append(output[0])
        for name, value in gradient.items():
            found[name][jet, :, :n] = value[0]
    return np.array(logits), found


def write(path, found, known, cotangent, gradient):
    """Write gradients, if the outputs are those of the fixture."""
    difference = abs(found - known["logits"]).max()
    if difference > 1e-9:
        raise SystemExit(f"{path.name}: outputs differ by {difference:.1e} from those of the fixture")
    np.savez(path, cotangent=cotangent, **gradient)
    print(f"{path.relative_to(FIXTURES)}: {', '.join(gradient)}")


def fixtures(_):
    """Write the gradients of the tests."""
    random = np.random.default_rng(17)

    def small(name, model, inputs):
        known = np.load(FIXTURES / f"{name}.npz")
        torch.manual_seed(7)
        model = randomise(model, 7).double()
        cotangent = random.normal(size=known["logits"].shape)
        given = {key: known[key] for key in inputs}
        found, gradient = gradients(lambda **tensors: model(*tensors.values()), given, inputs, cotangent)
        write(FIXTURES / f"{name}_gradients.npz", found, known, cotangent, gradient)

    torch.manual_seed(7)
    layers = torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    small("mlp", torch.nn.Sequential(*layers), ["x"])
    torch.manual_seed(7)
    small("image", ImageEncoder(), ["image"])
    for name, version in (("part", 1), ("part3", 3)):
        known = np.load(FIXTURES / f"{name}.npz")
        cotangent = random.normal(size=known["logits"].shape)
        model = particle_transformer(**SMALL, version=version).double()
        write(FIXTURES / f"{name}_gradients.npz", *_jets(model, known, cotangent))
    for name in ("part_weights", "part2_weights", "part3_weights"):
        folder = FIXTURES / name
        config = json.loads((folder / "config.json").read_text())
        model = particle_transformer(**{key: value for key, value in config.items() if key != "model_type"})
        model.load_state_dict(load_file(folder / "model.safetensors"))
        known = np.load(folder / "reference.npz")
        cotangent = random.normal(size=known["logits"].shape)
        write(folder / "gradients.npz", *_jets(model.double(), known, cotangent))
    for name, kind, output in (("vit_logits", "ViTForImageClassification", "logits"), ("vit_pooled", "ViTModel", "pooler_output")):
        folder = FIXTURES / name
        model = getattr(transformers, kind).from_pretrained(folder, dtype=torch.float32).eval().double()
        known = np.load(folder / "reference.npz")
        cotangent = random.normal(size=known["logits"].shape)
        call = lambda pixel_values, model=model, output=output: model(pixel_values=pixel_values)[output]
        found, gradient = gradients(call, {"pixel_values": known["pixel_values"]}, ["pixel_values"], cotangent)
        write(folder / "gradients.npz", found, known, cotangent, gradient)
    embeddings(random)


def _jets(model, known, cotangent):
    found, gradient = gradients_of_jets(model, known, cotangent)
    return found, known, cotangent, gradient


class OfEmbeddings(torch.nn.Module):
    """A BERT whose input is what its tokens are looked up as."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, embeddings, mask):
        # Of a mask with two axes transformers makes another graph.
        hidden = torch.where(mask[:, None, None, :], 0.0, -1e4)
        return self.model(inputs_embeds=embeddings, attention_mask=hidden.to(embeddings.dtype)).logits


def embeddings(random):
    """Write the small BERT as ONNX with embeddings of tokens as its input, and its gradients."""
    model = transformers.BertForSequenceClassification.from_pretrained(FIXTURES / "bert_logits", attn_implementation="eager").eval()
    known = np.load(FIXTURES / "bert_logits" / "reference.npz")
    table = model.bert.embeddings.word_embeddings.weight.detach().numpy()
    inputs = {"embeddings": table[known["input_ids"]], "mask": known["attention_mask"].astype(bool)}
    axes = {"embeddings": {0: "batch", 1: "tokens"}, "mask": {0: "batch", 1: "tokens"}, "logits": {0: "batch"}}
    wrapped = OfEmbeddings(model).eval()
    export(wrapped, [torch.tensor(value) for value in inputs.values()], FIXTURES / "bert_embeddings.onnx", (list(inputs), ["logits"]), 17, axes)
    cotangent = random.normal(size=known["logits"].shape)
    wrapped.double()
    gradient = np.zeros(inputs["embeddings"].shape)
    logits = []
    for text, n in enumerate(known["attention_mask"].sum(1)):
        one = {name: value[text : text + 1, :n] for name, value in inputs.items()}
        found, of_one = gradients(wrapped, one, ["embeddings"], cotangent[text : text + 1])
        logits.append(found[0])
        gradient[text, :n] = of_one["embeddings"][0]
    np.savez(FIXTURES / "bert_embeddings.npz", **inputs, logits=np.array(logits))
    np.savez(FIXTURES / "bert_embeddings_gradients.npz", cotangent=cotangent, embeddings=gradient)
    print("bert_embeddings_gradients.npz: embeddings")


def whole_model(folder):
    """Return the Particle Transformer of the paper with random weights, and its folder."""
    config = {"input_dim": 17, "num_classes": 10}
    model = particle_transformer(**config)
    save_file({key: value.contiguous() for key, value in model.state_dict().items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "particle_transformer", **config}))
    return model


def accuracy(args):
    """Compare gradients of the whole model with PyTorch."""
    import torchless

    inputs = jets(args.events, 17)
    with tempfile.TemporaryDirectory() as folder:
        model = whole_model(Path(folder))
        encoder = torchless.Encoder(folder)
        cotangent = np.random.default_rng(5).normal(size=(args.events, 10))
        _, expected = gradients_of_jets(model.double(), inputs, cotangent)
        found = encoder.gradients(inputs, cotangents={"logits": cotangent}, mask="mask", threads=0)
        for name, value in expected.items():
            # Of one jet and one feature: gradients of different features differ by powers of ten.
            scale = abs(value).max(axis=2, keepdims=True) + 1e-30
            difference = abs(found.inputs[name] - value) / scale
            print(f"{name}: gradients reach {abs(value).max():.1e}; differences reach {difference.max():.1e} of the largest of a jet's feature")


def speed(args):
    """Measure outputs, and outputs with gradients, in both."""
    import torchless

    torch.set_num_threads(1)
    inputs = jets(args.events, 17)
    with tempfile.TemporaryDirectory() as folder:
        model = whole_model(Path(folder))
        encoder = torchless.Encoder(folder)
        counts = inputs["mask"][:, 0].sum(1)
        one = [{name: np.ascontiguousarray(inputs[name][jet : jet + 1, :, :n]) for name in inputs} for jet, n in enumerate(counts)]

        def with_pytorch(has_gradient):
            for jet in one:
                x, v, mask = (torch.tensor(jet[name]) for name in ("x", "v", "mask"))
                with torch.set_grad_enabled(has_gradient):
                    logits = model(x.requires_grad_(has_gradient), v.requires_grad_(has_gradient), mask)
                if has_gradient:
                    torch.autograd.grad(logits[:, 0].sum(), [x, v])

        def with_torchless(has_gradient):
            for jet in one:
                encoder.gradients(jet, mask="mask") if has_gradient else encoder.encode(jet, mask="mask")

        def in_batches(has_gradient):
            encoder.gradients(inputs, mask="mask") if has_gradient else encoder.encode(inputs, mask="mask")

        for parameter in model.parameters():
            parameter.requires_grad_(False)
        ways = {"PyTorch, jet by jet": with_pytorch, "torchless, jet by jet": with_torchless, "torchless, all at once": in_batches}
        best = {}
        for _ in range(3):
            for name, way in ways.items():
                for has_gradient in (False, True):
                    start = time.perf_counter()
                    way(has_gradient)
                    seconds = time.perf_counter() - start
                    best[name, has_gradient] = min(best.get((name, has_gradient), seconds), seconds)
        for name in ways:
            plain, both = (best[name, has_gradient] / args.events * 1e3 for has_gradient in (False, True))
            print(f"{name}: {plain:.2f} ms a jet, {both:.2f} ms with gradients, {both / plain:.2f} times as long")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["fixtures", "accuracy", "speed"])
    parser.add_argument("--events", type=int, default=200)
    args = parser.parse_args()
    {"fixtures": fixtures, "accuracy": accuracy, "speed": speed}[args.what](args)


if __name__ == "__main__":
    sys.exit(main())
