#!/usr/bin/env python3
"""Writes a Llama with random weights as a GGUF file: the same numbers for every format, rounded as
the format does.

    transformer_model.py '{"path": …, "kind": "Q8_0", "hidden": 1024, …}'
"""
import json
import os
import sys

import gguf
import numpy as np


def matrices(shape):
    """Names, rows and columns of all matrices, in one order."""
    hidden, width = shape["hidden"], shape["hidden"] // shape["heads"]
    yield "token_embd", shape["vocabulary"], hidden
    yield "output", shape["vocabulary"], hidden
    for layer in range(shape["layers"]):
        keys = shape["kv_heads"] * width
        for part, rows, columns in [("q", hidden, hidden), ("k", keys, hidden), ("v", keys, hidden), ("output", hidden, hidden)]:
            yield f"blk.{layer}.attn_{part}", rows, columns
        middle = shape["intermediate"]
        for part, rows, columns in [("gate", middle, hidden), ("up", middle, hidden), ("down", hidden, middle)]:
            yield f"blk.{layer}.ffn_{part}", rows, columns


def main():
    shape = json.loads(sys.argv[1])
    kind = gguf.GGMLQuantizationType[shape["kind"]]
    writer = gguf.GGUFWriter(shape["path"] + ".part", "llama")
    writer.add_context_length(shape["context"])
    writer.add_embedding_length(shape["hidden"])
    writer.add_block_count(shape["layers"])
    writer.add_feed_forward_length(shape["intermediate"])
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["kv_heads"])
    writer.add_rope_dimension_count(shape["hidden"] // shape["heads"])
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(shape["vocabulary"])
    writer.add_tokenizer_model("no_vocab")
    draw = np.random.Generator(np.random.PCG64(20250101))
    for name, rows, columns in matrices(shape):
        values = draw.standard_normal((rows, columns), dtype=np.float32) * np.float32(0.02)
        writer.add_tensor(f"{name}.weight", gguf.quants.quantize(values, kind), raw_dtype=kind)
    norms = ["output_norm", *(f"blk.{layer}.{part}_norm" for layer in range(shape["layers"]) for part in ("attn", "ffn"))]
    for name in norms:
        writer.add_tensor(f"{name}.weight", np.ones(shape["hidden"], dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(shape["path"] + ".part", shape["path"])


if __name__ == "__main__":
    sys.exit(main())
