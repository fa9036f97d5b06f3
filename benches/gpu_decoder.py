"""A transformer of random weights, for GPUs to be tried and measured with."""
import json
import pathlib
import random
import struct
import subprocess
import tempfile

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


def decode(steps, torchless, device: str) -> str:
    """Decoding on `device`, as a part of what the memory's bandwidth allows."""
    what, is_real = "transformers: decode", device != "emulated"
    if not steps.wants(what):
        return ""
    with tempfile.TemporaryDirectory() as folder:
        write_decoder(pathlib.Path(folder), *((2048, 24) if is_real else (128, 1, 300)))
        prompt, decoded = (512, 128) if is_real else (4, 2)
        bench = [torchless, "bench", "--model", folder, "--device", device, "--prefill", prompt, "--decode", decoded, "--json"]
        answer = steps.run(what, bench)
    if not answer:
        return ""
    found = json.loads(answer)
    rate, share = found["decode"]["bytes_per_second"], share_of_memory(found["decode"]["bytes_per_second"])
    tokens = f"{found['prefill']['tokens_per_second']:.0f} tokens/s of the prompt, {found['decode']['tokens_per_second']:.1f} tokens/s decoded"
    return f"A transformer: {tokens}, {rate / 1e9:.2f} GB/s of weights{share}; {found['decode']['of_each_token']} for each token."


def share_of_memory(rate: float) -> str:
    """`rate` as a share of what the GPU's memory gives, where its maker's figure is known."""
    try:
        name = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True).stdout
    except OSError:
        return ""
    limit = next((limit for gpu, limit in BANDWIDTH.items() if gpu in name), None)
    return f", {rate / limit:.2f} of the {limit / 1e12} TB/s of its memory" if limit else ""
