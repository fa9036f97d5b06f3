#!/usr/bin/env python3
"""Compare `torchless` with transformers and llama.cpp on small random models of every family and
setting that it knows.

    torchless_families.py --bin target/release/torchless

It needs torch, transformers, safetensors and gguf, and uses llama-cpp-python if it is installed.
Each model is drawn here, saved by transformers, and computed from the folder by transformers in
double precision and by torchless. If llama.cpp's files can express it, it is also written as GGUF,
with rows of queries and keys as llama.cpp's converter orders them, and read by torchless and by
llama.cpp. Exit status 1 if a logit is more than 1e-4 off.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np
import torch
import transformers

TOLERANCE = 1e-4
TOKENS = [1, 7, 3, 69, 12, 12, 40, 5, 33, 8, 61, 2, 19, 44, 44, 50, 27, 6, 9, 13, 68, 31, 22, 17, 80, 95, 4, 4]
SMALL = dict(vocab_size=96, hidden_size=64, intermediate_size=112, num_hidden_layers=3, num_attention_heads=8, num_key_value_heads=2)
SMALL |= dict(max_position_embeddings=128, rms_norm_eps=1e-5, tie_word_embeddings=False, initializer_range=0.2)
LLAMA3 = dict(rope_type="llama3", rope_theta=1000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=24)
CASES = {
    "llama": ("Llama", {}),
    "llama, tied": ("Llama", dict(tie_word_embeddings=True)),
    "llama, one head of keys": ("Llama", dict(num_key_value_heads=1)),
    "llama, as many heads of keys": ("Llama", dict(num_key_value_heads=8)),
    "llama, explicit head_dim": ("Llama", dict(head_dim=20)),
    "llama, biases everywhere": ("Llama", dict(attention_bias=True, mlp_bias=True)),
    "llama, llama3 scaling": ("Llama", dict(rope_parameters=LLAMA3)),
    "llama, linear scaling": ("Llama", dict(rope_parameters=dict(rope_type="linear", rope_theta=500.0, factor=4.0))),
    "llama, another theta": ("Llama", dict(rope_parameters=dict(rope_type="default", rope_theta=500000.0))),
    "mistral": ("Mistral", dict(sliding_window=None)),
    "mistral, window 5": ("Mistral", dict(sliding_window=5)),
    "mistral, head_dim and window": ("Mistral", dict(sliding_window=7, head_dim=12)),
    "qwen2": ("Qwen2", {}),
    "qwen2, tied": ("Qwen2", dict(tie_word_embeddings=True)),
    "qwen2, windows from layer 1": ("Qwen2", dict(use_sliding_window=True, sliding_window=6, max_window_layers=1)),
}
# What GGUF has no key for, or llama.cpp computes otherwise.
FOLDER_ONLY = ("window", "linear", "biases")


def drawn(family, settings):
    """A model with weights that matter: norms and biases are random, too."""
    torch.manual_seed(sum(map(ord, family)) + len(settings))
    configuration = getattr(transformers, f"{family}Config")(**{**SMALL, **settings}, eos_token_id=[2, 3])
    configuration._attn_implementation = "eager"
    model = getattr(transformers, f"{family}ForCausalLM")(configuration).eval()
    for name, weight in model.named_parameters():
        if name.endswith("norm.weight"):
            weight.data = 1 + 0.3 * torch.randn_like(weight)
        if name.endswith("bias"):
            weight.data = 0.3 * torch.randn_like(weight)
    return model


def old_style(folder):
    """`config.json` as transformers before 5 wrote it."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    parameters = config.pop("rope_parameters", None) or {}
    config["rope_theta"] = parameters.pop("rope_theta", 10000.0)
    config["rope_scaling"] = None if parameters.get("rope_type", "default") == "default" else parameters
    config["torch_dtype"] = config.pop("dtype", "float32")
    path.write_text(json.dumps(config))


def write_gguf(model, path):
    """The model as llama.cpp's converter would write it, in single precision."""
    configuration = model.config
    architecture = "qwen2" if configuration.model_type == "qwen2" else "llama"
    width = getattr(configuration, "head_dim", None) or configuration.hidden_size // configuration.num_attention_heads
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(configuration.max_position_embeddings)
    writer.add_embedding_length(configuration.hidden_size)
    writer.add_block_count(configuration.num_hidden_layers)
    writer.add_feed_forward_length(configuration.intermediate_size)
    writer.add_head_count(configuration.num_attention_heads)
    writer.add_head_count_kv(configuration.num_key_value_heads)
    writer.add_key_length(width)
    writer.add_value_length(width)
    writer.add_rope_dimension_count(width)
    writer.add_rope_freq_base(configuration.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(configuration.rms_norm_eps)
    writer.add_vocab_size(configuration.vocab_size)
    writer.add_tokenizer_model("no_vocab")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[architecture.upper()], configuration.num_hidden_layers)
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight" and configuration.tie_word_embeddings:
            continue
        values = weight.float().numpy()
        if architecture == "llama" and (".q_proj." in name or ".k_proj." in name):
            heads = configuration.num_attention_heads if ".q_proj." in name else configuration.num_key_value_heads
            values = values.reshape(heads, 2, -1, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), np.ascontiguousarray(values))
    if configuration.rope_parameters["rope_type"] == "llama3":
        rotary = model.model.rotary_emb
        plain = configuration.rope_parameters["rope_theta"] ** (-np.arange(0, width, 2) / width)
        writer.add_tensor("rope_freqs.weight", (plain / rotary.inv_freq.double().numpy()).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def ours(binary, path, chunk):
    command = [binary, "logits", "--model", path, "--tokens", ",".join(map(str, TOKENS)), "--all", "--json", "--chunk", str(chunk)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return np.array(json.loads(done.stdout)["logits"])


def llama_cpp(path):
    try:
        import llama_cpp
    except ImportError:
        return None
    single = llama_cpp.GGML_TYPE_F32
    model = llama_cpp.Llama(str(path), n_ctx=128, logits_all=True, verbose=False, type_k=single, type_v=single)
    model.eval(TOKENS)
    return np.array(model.scores[: len(TOKENS)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("target/release/torchless"))
    binary = parser.parse_args().bin
    worst = 0.0
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    for name, (family, settings) in CASES.items():
        model = drawn(family, settings)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            folder = pathlib.Path(folder)
            model.save_pretrained(folder)
            off = {}
            file = folder / "model.gguf"
            if not any(word in name for word in FOLDER_ONLY):
                write_gguf(model, file)
            expected = model.double()(torch.tensor([TOKENS])).logits[0].numpy()
            distance = lambda found, expected=expected: float(np.abs(found - expected).max())
            off["folder"] = max(distance(ours(binary, folder, chunk)) for chunk in (1, 7, 100))
            old_style(folder)
            off["old config"] = distance(ours(binary, folder, 100))
            if file.exists():
                off["GGUF"] = distance(ours(binary, file, 100))
            worst = max(worst, *off.values())
            if file.exists() and (theirs := llama_cpp(file)) is not None:
                off["llama.cpp itself"] = distance(theirs)
        print(f"{name:32} logits to {np.abs(expected).max():5.1f}; " + ", ".join(f"{what} {value:.1e}" for what, value in off.items()), flush=True)
    print(f"greatest difference {worst:.1e}, tolerance {TOLERANCE:.0e}")
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
