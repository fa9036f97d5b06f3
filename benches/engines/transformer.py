#!/usr/bin/env python3
"""Runs one foreign transformer engine in its own environment, and times what it is
asked, request by request.

    transformer.py {llama.cpp|pytorch} MODEL.gguf THREADS

Requests and answers are lines of JSON. {"prefill": [ids]} starts anew and reads a prompt,
{"decode": [ids]} goes on token by token, {"score": [[ids], ...]} gives log-probabilities of whole
sequences in one padded batch. Every answer has the elapsed and the processor seconds. PyTorch's
forward pass is our own, in as few calls of PyTorch as we know: no library is in between.
"""
import json
import sys
import time


class LlamaCpp:
    def __init__(self, path, threads):
        import llama_cpp

        self.version = f"llama.cpp (llama-cpp-python {llama_cpp.__version__})"
        self.model = llama_cpp.Llama(path, n_ctx=1024, n_batch=512, n_ubatch=512, n_threads=threads, n_threads_batch=threads, verbose=False)
        self.library = llama_cpp

    def prefill(self, tokens):
        self.model.reset()
        self.model.eval(tokens)

    def decode(self, tokens):
        for token in tokens:
            self.model.eval([token])

    def logits(self):
        pointer = self.library.llama_get_logits_ith(self.model._ctx.ctx, -1)
        return pointer[: self.model.n_vocab()]


class PyTorch:
    """A decoder whose pairs of rotary numbers are neighbours, as GGUF files of the architecture
    `llama` have them."""

    def __init__(self, path, threads):
        import gguf
        import torch

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.torch, self.version = torch, f"PyTorch {torch.__version__}"
        reader = gguf.GGUFReader(path)
        number = lambda name: reader.fields[f"llama.{name}"].contents()
        self.heads, self.kv_heads, self.layers = number("attention.head_count"), number("attention.head_count_kv"), number("block_count")
        self.width, self.epsilon = number("rope.dimension_count"), number("attention.layer_norm_rms_epsilon")
        self.weights = {tensor.name.removesuffix(".weight"): torch.tensor(tensor.data) for tensor in reader.tensors}
        frequencies = number("rope.freq_base") ** (-torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
        angles = torch.outer(torch.arange(1024, dtype=torch.float64), frequencies)
        self.turns = torch.polar(torch.ones_like(angles), angles).to(torch.complex64)
        self.cache, self.length = None, 0

    def turn(self, x, turns):
        pairs = self.torch.view_as_complex(x.unflatten(-1, (-1, 2)))
        return self.torch.view_as_real(pairs * turns).flatten(-2)

    def attention(self, name, x, first):
        functional, weights = self.torch.nn.functional, self.weights
        batch, n, _ = x.shape
        project = lambda part: functional.linear(x, weights[f"{name}.attn_{part}"]).view(batch, n, -1, self.width).transpose(1, 2)
        turns = self.turns[first : first + n]
        query, key, value = self.turn(project("q").contiguous(), turns), self.turn(project("k").contiguous(), turns), project("v")
        if self.cache is not None:
            keys, values = self.cache.setdefault(name, self.torch.zeros(2, 1, self.kv_heads, 1024, self.width))
            keys[:, :, first : first + n], values[:, :, first : first + n] = key, value
            key, value = keys[:, :, : first + n], values[:, :, : first + n]
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=n > 1, enable_gqa=True)
        return functional.linear(mixed.transpose(1, 2).reshape(batch, n, -1), weights[f"{name}.attn_output"])

    def forward(self, tokens, first=0, last_only=True):
        functional, weights = self.torch.nn.functional, self.weights
        norm = lambda x, name: functional.rms_norm(x, x.shape[-1:], weights[name], self.epsilon)
        x = weights["token_embd"][tokens]
        for layer in range(self.layers):
            name = f"blk.{layer}"
            x = x + self.attention(name, norm(x, f"{name}.attn_norm"), first)
            y = norm(x, f"{name}.ffn_norm")
            gated = functional.silu(functional.linear(y, weights[f"{name}.ffn_gate"])) * functional.linear(y, weights[f"{name}.ffn_up"])
            x = x + functional.linear(gated, weights[f"{name}.ffn_down"])
        return functional.linear(norm(x[:, -1:] if last_only else x, "output_norm"), weights["output"])

    def prefill(self, tokens):
        self.cache = self.cache or {}
        self.row, self.length = self.forward(self.torch.tensor([tokens])), len(tokens)

    def decode(self, tokens):
        for token in tokens:
            self.row = self.forward(self.torch.tensor([[token]]), self.length)
            self.length += 1

    def logits(self):
        return self.row[0, -1].tolist()

    def score(self, sequences):
        """log p of all tokens but the first, in batches of 256 sequences of about one length."""
        torch, sums, self.cache = self.torch, [0.0] * len(sequences), None
        order = sorted(range(len(sequences)), key=lambda index: len(sequences[index]))
        for start in range(0, len(order), 256):
            here = order[start : start + 256]
            length = max(len(sequences[index]) for index in here)
            tokens = torch.tensor([sequences[index] + [0] * (length - len(sequences[index])) for index in here])
            known = torch.tensor([[1.0] * (len(sequences[index]) - 1) + [0.0] * (length - len(sequences[index])) for index in here])
            rows = torch.log_softmax(self.forward(tokens, last_only=False)[:, :-1], -1)
            totals = (rows.gather(-1, tokens[:, 1:, None])[..., 0] * known).sum(-1)
            for index, total in zip(here, totals.tolist()):
                sums[index] = total
        return sums


def main():
    name, path, threads = sys.argv[1:]
    engine = {"llama.cpp": LlamaCpp, "pytorch": PyTorch}[name](path, int(threads))
    print(json.dumps({"version": engine.version}), flush=True)
    for line in sys.stdin:
        (verb, what), = json.loads(line).items()
        if verb == "logits":
            print(json.dumps(list(engine.logits())), flush=True)
            continue
        elapsed, processor = time.perf_counter(), time.process_time()
        result = getattr(engine, verb)(what)
        answer = {"elapsed": time.perf_counter() - elapsed, "processor": time.process_time() - processor, "result": result}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    sys.exit(main())
