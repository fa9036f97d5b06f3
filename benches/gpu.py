#!/usr/bin/env python3
"""Try and measure an NVIDIA GPU from this working tree alone: tests, parity, toys, kernels, sanitizers, transformers; appends to benches/RECORD.md.

    gpu.py [--toys 10000] [--print]     on a machine with an NVIDIA driver and Rust; under ten minutes, most of it compiling
    gpu.py --device emulated --print    the same steps where there is none, with few toys

It was written where there is no GPU and has not been run on one. Published models are used where
`../shared/data` has them, else generated ones; the transformer that is measured is made here, of random weights.
`compute-sanitizer`, of CUDA's toolkit, is used where it is installed. Exit status 1 if a step fails; the others are done all the
same, and the section says which.
"""
import argparse
import datetime
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


class Steps:
    """What was done, how it ended, and what it said."""

    def __init__(self):
        self.rows = []
        self.good = True

    def run(self, what: str, command, limit: int = 300, **environment: str) -> str:
        print(f"{what} …", file=sys.stderr, flush=True)
        start = time.perf_counter()
        try:
            done = subprocess.run(list(map(str, command)), cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, encoding="utf-8", timeout=limit)
            good, out, err = done.returncode == 0, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            good, out, err = False, "", f"it took more than {limit} s"
        if not good:
            print(out[-3000:], err[-3000:], sep="\n", file=sys.stderr)
        self.good &= good
        self.rows.append(f"| {what} | {'done' if good else '**failed**'} | {time.perf_counter() - start:.0f} s |")
        return out

    def skip(self, what: str, why: str):
        self.rows.append(f"| {what} | skipped: {why} | |")


def line(command) -> str:
    """The first line that a command prints, or nothing where it is not."""
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip().splitlines()[0]
    except (OSError, IndexError):
        return ""


# Bytes per second that a GPU's memory gives, as its maker says.
BANDWIDTH = {"H200": 4.8e12, "H100": 3.35e12, "A100": 2.0e12}


def write_decoder(folder: pathlib.Path, hidden: int, layers: int, vocabulary: int = 32_000):
    """A Llama of random bfloat16 weights between 2^-7 and 2^-5 in magnitude."""
    intermediate, heads = 4 * hidden, hidden // 128
    shapes = {"model.embed_tokens.weight": (vocabulary, hidden), "model.norm.weight": (hidden,), "lm_head.weight": (vocabulary, hidden)}
    for layer in range(layers):
        name = f"model.layers.{layer}."
        shapes |= {f"{name}{part}_layernorm.weight": (hidden,) for part in ("input", "post_attention")}
        shapes |= {f"{name}self_attn.{part}_proj.weight": (hidden, hidden) for part in "qkvo"}
        shapes |= {f"{name}mlp.{part}_proj.weight": (intermediate, hidden) for part in ("gate", "up")}
        shapes[f"{name}mlp.down_proj.weight"] = (hidden, intermediate)
    sizes_of_model = {"hidden_size": hidden, "intermediate_size": intermediate, "num_hidden_layers": layers, "vocab_size": vocabulary}
    heads_of_model = {"num_attention_heads": heads, "num_key_value_heads": heads, "max_position_embeddings": 4096, "rope_theta": 10_000.0}
    kind = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "torch_dtype": "bfloat16", "hidden_act": "silu", "rms_norm_eps": 1e-5}
    config = kind | sizes_of_model | heads_of_model | {"tie_word_embeddings": False, "bos_token_id": 0, "eos_token_id": 1}
    (folder / "config.json").write_text(json.dumps(config))
    sizes = {name: 2 * shape[0] * (shape[1] if len(shape) == 2 else 1) for name, shape in shapes.items()}
    header, offset = {}, 0
    for name, shape in shapes.items():
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + sizes[name]]}
        offset += sizes[name]
    text = json.dumps(header).encode()
    generator = random.Random(1)
    signs = bytes(0x3C | (byte & 0x80) for byte in range(256))
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for size in sizes.values():
            words = bytearray(size)
            words[0::2] = generator.randbytes(size // 2)
            words[1::2] = generator.randbytes(size // 2).translate(signs)
            file.write(words)


def transformers(steps: Steps, device: str, binary: pathlib.Path, profile) -> str:
    """Parity of the transformer's kernels, and decoding as a part of what the memory's bandwidth allows."""
    cargo = ["cargo", "test", "--locked", "-p", "torchless", "--test", "torchless", "--", "devices", "kernel_vectors"]
    steps.run("transformers: parity with the CPU and the references", cargo, 600, NEXTSTAT_TEST_DEVICE=device)
    steps.run("transformers: build", ["cargo", "build", *profile, "--locked", "-p", "torchless", "--features", device], 600)
    is_real = device != "emulated"
    with tempfile.TemporaryDirectory() as folder:
        write_decoder(pathlib.Path(folder), *((2048, 24) if is_real else (128, 1, 300)))
        prompt, decoded = (512, 128) if is_real else (4, 2)
        bench = [binary, "bench", "--model", folder, "--device", device, "--prefill", prompt, "--decode", decoded, "--json"]
        answer = steps.run("transformers: decode", bench)
    if not answer:
        return ""
    found = json.loads(answer)
    name = line(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"])
    limit = next((limit for gpu, limit in BANDWIDTH.items() if gpu in name), None)
    rate = found["decode"]["bytes_per_second"]
    share = f", {rate / limit:.2f} of the {limit / 1e12} TB/s of its memory" if limit else ""
    tokens = f"{found['prefill']['tokens_per_second']:.0f} tokens/s of the prompt, {found['decode']['tokens_per_second']:.1f} tokens/s decoded"
    return f"A transformer: {tokens}, {rate / 1e9:.2f} GB/s of weights{share}; {found['decode']['of_each_token']} for each token."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "emulated"), default="cuda")
    parser.add_argument("--toys", type=int)
    parser.add_argument("--print", action="store_true", help="print the section instead of appending it")
    arguments = parser.parse_args()
    device = arguments.device
    is_real = device != "emulated"
    toys = arguments.toys or (10_000 if is_real else 40)
    # The emulation only tries the steps: what the tests have built is good enough for that.
    profile, folder = (["--release"], TARGET / "release") if is_real else ([], TARGET / "debug")
    nextstat, cargo = folder / "nextstat", ["cargo"]
    features = ["--features", device]
    steps = Steps()

    steps.run("build", [*cargo, "build", *profile, "--locked", "-p", "ns-cli", "-p", "ns-benches", "--features", f"ns-cli/{device},ns-benches/{device}"], 600)
    devices = steps.run("`nextstat devices`", [nextstat, "devices"])
    print(devices, file=sys.stderr)
    if is_real:
        steps.run("hardware tests of ns-device", [*cargo, "test", "--locked", "-p", "ns-device", *features, "--test", "hardware", "--", "--nocapture"], 600)
    else:
        steps.skip("hardware tests of ns-device", "no hardware")
    # The device's own tests: values, gradients, steps, fits and ensembles of random, odd and published models, within testdata/parity.json.
    parity = steps.run("parity with the CPU", [*cargo, "test", "--locked", "-p", "ns-compute", *features, "--test", "devices", "--", "--nocapture"], 600, NEXTSTAT_TEST_DEVICE=device)
    measured = steps.run(f"{toys} toys, batches, kernels", [folder / "ns-benches", "devices", "--device", device, "--toys", toys])
    fit = [nextstat, "fit", "examples/shapes.json", "--device", device, "--quiet"]
    for tool in ("memcheck", "racecheck"):
        if is_real and shutil.which("compute-sanitizer"):
            steps.run(f"compute-sanitizer, {tool}", ["compute-sanitizer", "--tool", tool, "--error-exitcode", "1", *fit])
        else:
            steps.skip(f"compute-sanitizer, {tool}", "not installed" if is_real else "no hardware")

    decoding = transformers(steps, device, folder / "torchless", profile)
    commit = line(["git", "rev-parse", "--short", "HEAD"]) or "no repository"
    driver = line(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])
    held = [text for text in parity.splitlines() if " f64: " in text or " f32: " in text or text.startswith(("f64", "f32"))]
    section = "\n".join(
        [
            "",
            f"## {datetime.date.today()}, {commit}: {'a GPU' if is_real else 'the emulation'}",
            "",
            driver or ("" if is_real else "No GPU: the steps of benches/gpu.py, tried."),
            "",
            "| step | | time |\n|---|---|---|",
            *steps.rows,
            "",
            f"Held against the CPU, {len(held)} lines, as parts of what testdata/parity.json allows:",
            "",
            "```",
            *held,
            "```",
            "",
            measured.strip(),
            "",
            decoding,
            "",
        ]
    )
    if arguments.print:
        print(section)
    else:
        with (ROOT / "benches/RECORD.md").open("a", encoding="utf-8") as record:
            record.write(section)
    return 0 if steps.good else 1


if __name__ == "__main__":
    sys.exit(main())
