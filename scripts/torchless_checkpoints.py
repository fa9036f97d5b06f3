#!/usr/bin/env python3
"""Makes the encoders of safetensors that torchless is tested with, and compares it with PyTorch and
ONNX Runtime.

Needs PyTorch, transformers, safetensors and weaver-core from PyPI, and for `speed` onnx and
onnxruntime.

  fixtures   write small random models and their outputs in double precision into
             torchless/tests/encoders
  accuracy   compare models of middle size with PyTorch in double precision on many inputs
  speed      compare a BERT with ONNX Runtime, one thread each, batches of 1 to 16 in turn
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import transformers
from torchless_encoders import FIXTURES, ROOT, encode, export, jets, particle_transformer, randomise, reference_of_jets, write_checkpoint

TEXT = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24, "vocab_size": 30,
    "max_position_embeddings": 16,
}  # fmt: skip
IMAGE = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "image_size": [8, 12],
    "patch_size": 4, "num_channels": 3,
}  # fmt: skip
JETS = {"input_dim": 5, "num_classes": 3, "embed_dims": [16, 16], "pair_embed_dims": [8], "num_heads": 2, "num_layers": 2, "num_cls_layers": 1}  # fmt: skip


DISTILLED = {"dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 24, "vocab_size": 30, "max_position_embeddings": 16}


def texts(n_texts, n_tokens, vocabulary, seed=2):
    """Return texts of 1 to `n_tokens` tokens, padded with token 0."""
    random = np.random.default_rng(seed)
    mask = (np.arange(n_tokens) < random.integers(1, n_tokens + 1, (n_texts, 1))).astype(np.int64)
    ids = random.integers(1, vocabulary, (n_texts, n_tokens)) * mask
    kinds = random.integers(0, 2, (n_texts, n_tokens)) * mask
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}


def robust(inputs, pad=1):
    """Return inputs for RoBERTa: texts padded with token 1, which no text contains."""
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    return {"input_ids": np.where(mask == 1, np.where(ids == pad, 2, ids), pad), "attention_mask": mask}


def images(n_images, shape, seed=4):
    """Return images of random numbers."""
    return {"pixel_values": np.random.default_rng(seed).normal(size=(n_images, *shape)).astype(np.float32)}


def hugging_face(name, config, seed=7):
    """Return a random model of transformers, in which every tensor matters."""
    torch.manual_seed(seed)
    model = getattr(transformers, name)(config)
    return randomise(model, seed)


def reference(model, inputs):
    """Return all outputs in double precision, each event alone and without padding."""
    model.double()
    answers = []
    with torch.no_grad():
        for event in range(len(next(iter(inputs.values())))):
            one = {key: torch.tensor(value[event : event + 1]) for key, value in inputs.items()}
            if "attention_mask" in one:
                length = int(one["attention_mask"].sum())
                one = {key: value[:, :length] for key, value in one.items()}
            one = {key: value.double() if value.is_floating_point() else value for key, value in one.items()}
            answers.append({key: value.numpy()[0] for key, value in model(**one).items()})
    model.float()
    return answers


def write(name, model, inputs, output="logits", dtype=None):
    """Write a model of transformers, inputs and one output."""
    folder = FIXTURES / name
    if dtype is not None:
        model = model.to(dtype).float()
    answers = [answer[output] for answer in reference(model, inputs)]
    (model if dtype is None else model.to(dtype)).save_pretrained(folder, safe_serialization=True)
    for rest in folder.iterdir():
        if rest.name not in ("config.json", "model.safetensors"):
            rest.unlink()
    padded = np.zeros((len(answers), *np.max([answer.shape for answer in answers], axis=0)))
    for place, answer in zip(padded, answers):
        place[tuple(slice(size) for size in answer.shape)] = answer
    np.savez(folder / "reference.npz", **inputs, logits=padded)


def write_part(name, config):
    """Write a Particle Transformer: the file is the state dict, the configuration its arguments."""
    folder = FIXTURES / name
    model = particle_transformer(**config)
    for key, value in model.named_parameters():
        if key.endswith(("c_attn", "w_resid", "cls_token")):
            value.data += 0.3 * torch.randn(value.shape, generator=torch.Generator().manual_seed(len(key)))
    write_checkpoint(model, config, folder)
    inputs = jets(12, 5, 20)
    np.savez(folder / "reference.npz", **inputs, logits=reference_of_jets(model, inputs))


def fixtures(_):
    """Write the models of the tests."""
    inputs = texts(8, 12, 30)
    bert = transformers.BertConfig(**TEXT, num_labels=3)
    write("bert_logits", hugging_face("BertForSequenceClassification", bert), inputs)
    bert = transformers.BertConfig(**TEXT, hidden_act="gelu_new", layer_norm_eps=1e-3)
    write("bert_pooled", hugging_face("BertModel", bert), inputs, "pooler_output", torch.bfloat16)
    distilled = {key: inputs[key] for key in ("input_ids", "attention_mask")}
    small = transformers.DistilBertConfig(**DISTILLED, num_labels=3)
    write("distilbert_logits", hugging_face("DistilBertForSequenceClassification", small), distilled)
    small = transformers.RobertaConfig(**TEXT | {"max_position_embeddings": 18}, type_vocab_size=1, layer_norm_eps=1e-5, num_labels=3)
    write("roberta_logits", hugging_face("RobertaForSequenceClassification", small), robust(inputs))
    vit = transformers.ViTConfig(**IMAGE, num_labels=3, qkv_bias=False)
    write("vit_logits", hugging_face("ViTForImageClassification", vit), images(5, (3, 8, 12)))
    vit = transformers.ViTConfig(**IMAGE, hidden_act="silu", pooler_output_size=7)
    write("vit_pooled", hugging_face("ViTModel", vit), images(5, (3, 8, 12)), "pooler_output", torch.float16)
    write_part("part_weights", {**JETS, "fc_params": [[8, 0.1, "gelu"]], "activation": "relu"})
    write_part("part2_weights", {**JETS, "version": 2, "pair_input_dim": 3})
    write_part("part3_weights", {**JETS, "version": 3, "pair_input_dim": 5})


def accuracy(args):
    """Compare models of middle size with PyTorch."""
    torch.set_num_threads(1)
    middle = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 512}
    bert = transformers.BertConfig(**middle, vocab_size=1000, max_position_embeddings=64, num_labels=5)
    vit = transformers.ViTConfig(**middle, image_size=64, patch_size=8, num_labels=5)
    models = {
        "BERT": (hugging_face("BertForSequenceClassification", bert), texts(args.events, 64, 1000), ["--mask", "attention_mask"]),
        "ViT": (hugging_face("ViTForImageClassification", vit), images(args.events, (3, 64, 64)), []),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, (model, inputs, options) in models.items():
            model.save_pretrained(folder / what)
            expected = np.array([answer["logits"] for answer in reference(model, inputs)])
            found, _ = encode(args.bin, folder / what, inputs, folder, *options)
            say(what, found, expected)
        for version in (1, 2, 3):
            config = {"input_dim": 17, "num_classes": 10, "version": version}
            model, inputs = particle_transformer(**config), jets(args.events, 17)
            write_checkpoint(model, config, folder / "part")
            found, _ = encode(args.bin, folder / "part", inputs, folder, "--mask", "mask")
            say(f"ParT {version}", found, reference_of_jets(model, inputs))


def say(what, found, expected):
    difference = abs(found - expected).max()
    print(f"{what}: {len(found)} events, the largest difference is {difference:.2e}, outputs reach {abs(expected).max():.2f}", flush=True)


def speed(args):
    """Measure a BERT in both, in turn."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    config = transformers.BertConfig(
        hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024, vocab_size=1000,
        num_labels=2, attn_implementation="eager",
    )  # fmt: skip
    model = hugging_face("BertForSequenceClassification", config)
    inputs = texts(args.events, 128, 1000)
    inputs["attention_mask"][:] = 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save_pretrained(folder / "bert")
        names = list(inputs)
        axes = {key: {0: "batch", 1: "tokens"} for key in names} | {"logits": {0: "batch"}}

        class Logits(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, ids, mask, kinds):
                return self.model(input_ids=ids, attention_mask=mask, token_type_ids=kinds).logits

        export(Logits(), [torch.tensor(inputs[key][:2]) for key in names], folder / "bert.onnx", (names, ["logits"]), 17, axes)
        session = onnxruntime.InferenceSession(str(folder / "bert.onnx"), options, providers=["CPUExecutionProvider"])
        for batch in (1, 4, 16):
            times = {"onnxruntime": [], "torchless": []}
            for _ in range(3):
                start = time.perf_counter()
                for first in range(0, args.events, batch):
                    session.run(None, {key: value[first : first + batch] for key, value in inputs.items()})
                times["onnxruntime"].append(time.perf_counter() - start)
                times["torchless"].append(encode(args.bin, folder / "bert", inputs, folder, "--threads", "1", "--batch", str(batch))[1])
            best = {how: min(values) / args.events * 1e3 for how, values in times.items()}
            ratio = best["onnxruntime"] / best["torchless"]
            times_of = ", ".join(f"{how} {milliseconds:.2f} ms" for how, milliseconds in best.items())
            print(f"batch {batch:>2}: {times_of} per text; torchless is {ratio:.2f} times as fast", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["fixtures", "accuracy", "speed"])
    parser.add_argument("--bin", default=str(ROOT / "target" / "release" / "torchless"))
    parser.add_argument("--events", type=int, default=1000)
    args = parser.parse_args()
    {"fixtures": fixtures, "accuracy": accuracy, "speed": speed}[args.what](args)


if __name__ == "__main__":
    sys.exit(main())
