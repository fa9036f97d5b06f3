#!/usr/bin/env python3
"""Writes a decoder of a few thousand random weights, for trying torchless:
`python3 examples/toy_decoder.py FOLDER`.

Token ids 0 to 7 are particles, 8 begins a background event, 9 a signal event, 10 ends either.
Standard library only; the same bytes every time.
"""
import json
import pathlib
import random
import struct
import sys

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE, VOCABULARY, LAYERS = 16, 4, 2, 4, 24, 11, 2


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(1)
    shapes = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN), "model.norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        part = f"model.layers.{layer}."
        shapes[part + "input_layernorm.weight"] = shapes[part + "post_attention_layernorm.weight"] = (HIDDEN,)
        shapes[part + "self_attn.q_proj.weight"] = (HEADS * HEAD_DIM, HIDDEN)
        shapes[part + "self_attn.k_proj.weight"] = shapes[part + "self_attn.v_proj.weight"] = (KV_HEADS * HEAD_DIM, HIDDEN)
        shapes[part + "self_attn.o_proj.weight"] = (HIDDEN, HEADS * HEAD_DIM)
        shapes[part + "mlp.gate_proj.weight"] = shapes[part + "mlp.up_proj.weight"] = (INTERMEDIATE, HIDDEN)
        shapes[part + "mlp.down_proj.weight"] = (HIDDEN, INTERMEDIATE)
    header, data = {}, b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        values = [1.0 if len(shape) == 1 else source.uniform(-0.5, 0.5) for _ in range(count)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *values)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    config = {
        "model_type": "llama", "hidden_act": "silu", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "intermediate_size": INTERMEDIATE, "vocab_size": VOCABULARY,
        "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "bos_token_id": 8, "eos_token_id": 10,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


if __name__ == "__main__":
    main()
