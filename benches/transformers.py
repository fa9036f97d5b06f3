#!/usr/bin/env python3
"""Compare `torchless` with llama.cpp, PyTorch and candle on a generated model of 245 million
weights, and append what was measured to benches/RECORD.md.

    transformers.py --python .peers/transformers/bin/python --bin target/release [--candle PROGRAM] [--rounds 7] [--dry]

Every engine reads the same GGUF files; quantised ones are computed by torchless twice, with exact
inputs and with `--activations int8`. Rounds go round the engines, so that all of them meet the same
machine; the median round of each counts, and a ratio is the median of the rounds' ratios. candle is
built by `make bench-transformers CANDLE=1` and left out where it is not there; F16 and BF16 weights
are single precision for it once it has read them. On one thread a round's time is the elapsed one
or the processor's, whichever is shorter: where other programs run, the second is what an idle
machine would show. On several it is the elapsed one: engines that wait by turning round and round
would be charged for it. How far the engines' logits are apart is in the table. Models stay
beside the environment: 2 GB.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys

from comparing import HERE, THREAD_SETTINGS, heading, write

SHAPE = dict(hidden=1024, layers=16, heads=16, kv_heads=4, intermediate=2816, vocabulary=32000, context=2048)
SMALL = dict(hidden=32, layers=2, heads=4, kv_heads=2, intermediate=96, vocabulary=68, context=64)
FORMATS = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q5_K", "Q6_K"]
# What the package `gguf` cannot write, llama.cpp makes of the file of single precision: numbers of
# its enum `llama_ftype`.
BY_LLAMA_CPP = {"Q4_K": 14, "Q5_K": 16, "Q6_K": 18}
CANDLE_FORMATS = ["F32", "F16", "Q8_0", "Q4_0", "Q4_K", "Q5_K", "Q6_K"]
PROMPT = [(index * 7919 + 11) % 32000 for index in range(256)]
DECODED = [(index * 104729 + 5) % 32000 for index in range(24)]


def make_models(python, folder):
    """In the peers' environment, which has the package `gguf`."""
    for name, shape, formats in [("m245", SHAPE, FORMATS), ("small", SMALL, ["F32"])]:
        for kind in formats:
            path = folder / f"{name}-{kind}.gguf"
            if not path.exists():
                print(f"writing {path}", file=sys.stderr, flush=True)
                program, arguments = "transformer_model.py", dict(path=str(path), kind=kind, **shape)
                if kind in BY_LLAMA_CPP:
                    program, arguments = "transformer_quantise.py", dict(path=str(path), of=str(folder / f"{name}-F32.gguf"), kind=BY_LLAMA_CPP[kind])
                subprocess.run([python, HERE / "engines" / program, json.dumps(arguments)], check=True)


def time_of(elapsed, processor, threads):
    return min(elapsed, processor) if threads == 1 and processor else elapsed


class Peer:
    """An engine in a process of its own, which keeps its model between rounds."""

    def __init__(self, arguments, name, path, threads):
        environment = {**os.environ, **dict.fromkeys(THREAD_SETTINGS, str(threads))}
        command = [arguments.python, HERE / "engines/transformer.py", name, path, str(threads)]
        if name == "candle":
            command = [arguments.candle, path]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        self.threads = threads
        first = self.process.stdout.readline()
        self.version = json.loads(first)["version"] if first else None

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def seconds(self, **request):
        answer = self.ask(**request)
        return time_of(answer["elapsed"], answer["processor"], self.threads)

    def round(self):
        return dict(prefill=self.seconds(prefill=PROMPT), decode=self.seconds(decode=DECODED))

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def our_round(binary, path, threads, activations):
    """One run of `torchless bench`."""
    command = [binary, "bench", "--model", path, "--threads", str(threads), "--prefill", str(len(PROMPT)), "--decode", str(len(DECODED)), "--json"]
    command += ["--activations", activations]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    seconds = lambda part: time_of(answer[part]["seconds"], answer[part]["processor_seconds"], threads)
    bytes_read = answer["decode"]["bytes_per_second"] * answer["decode"]["seconds"]
    return dict(prefill=seconds("prefill"), decode=seconds("decode"), bandwidth=answer["read_bandwidth"], bytes=bytes_read, memory=answer["memory"])


def our_logits(binary, path, activations):
    tokens = ",".join(map(str, PROMPT + DECODED))
    command = [binary, "logits", "--model", path, "--tokens", tokens, "--json", "--activations", activations]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["logits"][-1]


def peers_of(arguments, kind, path, threads):
    names = ["llama.cpp", *["pytorch"] * (kind == "F32"), *["candle"] * (kind in CANDLE_FORMATS and arguments.candle is not None)]
    peers = [Peer(arguments, name, path, threads) for name in names if not arguments.peer or name in arguments.peer]
    return [peer for peer in peers if peer.version]


def compare(arguments, kind, threads):
    """One format: rows of the table."""
    path, binary = arguments.models / f"m245-{kind}.gguf", arguments.bin / "torchless"
    ours = ["exact", "int8"] if "Q" in kind else ["exact"]
    peers = peers_of(arguments, kind, path, threads)
    rounds = {engine: [] for engine in [*ours, *peers]}
    for _ in range(arguments.rounds):
        for engine, some in rounds.items():
            some.append(our_round(binary, path, threads, engine) if engine in ours else engine.round())
    exact = our_logits(binary, path, "exact")
    bandwidth = max(one["bandwidth"] for one in rounds["exact"])
    lines = []
    for engine, some in rounds.items():
        median = lambda part: statistics.median(one[part] for one in some)
        ratio = lambda part: statistics.median(one[part] / reference[part] for one, reference in zip(some, rounds["exact"]))
        speed = rounds["exact"][0]["bytes"] / median("decode")
        name = f"torchless, {engine}" if engine in ours else engine.version
        cells = [kind, threads, name, f"{len(DECODED) / median('decode'):.1f}", f"{ratio('decode'):.2f}", f"{speed / 1e9:.1f} ({speed / bandwidth:.2f})"]
        cells += [f"{len(PROMPT) / median('prefill'):.0f}", f"{ratio('prefill'):.2f}"]
        logits = our_logits(binary, path, engine) if engine in ours else engine.ask(logits=[])
        away = f"logits within {max(abs(a - b) for a, b in zip(exact, logits)):.0e}"
        lines.append(f"| {' | '.join(map(str, [*cells, memory_note(some) if engine == 'exact' else away]))} |")
        print(lines[-1], file=sys.stderr, flush=True)
    for peer in peers:
        peer.stop()
    return lines


def memory_note(rounds):
    memory = [one["memory"] for one in rounds]
    needed = memory[0]["weights"] + memory[0]["keys_and_values"]
    peak = max(one["peak"] or 0 for one in memory)
    return f"peak memory {peak / 1e6:.0f} MB, {peak / needed:.3f} of weights, keys and values"


def scored(arguments):
    """Sequences per second of one processor, our whole process against PyTorch's passes alone."""
    draw = random.Random(5)
    events = [[draw.randrange(64) for _ in range(draw.randrange(3, 14))] for _ in range(20_000)]
    path, binary = arguments.models / "small-F32.gguf", arguments.bin / "torchless"
    file = arguments.models / "events.json"
    file.write_text(json.dumps(events))
    peer = Peer(arguments, "pytorch", path, 1)
    if not peer.version:
        return []
    ours, theirs = [], []
    command = [binary, "score", "--model", path, "--prefix", "65", "--against", "64", "--end", "66", "--events", file, "--threads", "1", "--json"]
    for _ in range(arguments.rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ratios = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["llr"]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        ours.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        answers = [peer.ask(score=[[prefix, *event, 66] for event in events]) for prefix in (65, 64)]
        theirs.append(sum(answer["processor"] for answer in answers))
    away = max(abs(a - b - ratio) for a, b, ratio in zip(answers[0]["result"], answers[1]["result"], ratios))
    peer.stop()
    rate = lambda seconds: f"{2 * len(events) / min(seconds):,.0f}"
    sentence = f"`score`, {len(events):,} events under two prefixes, 28 thousand weights, one thread: "
    sentence += f"{rate(ours)} sequences per processor second, whole process"
    return [f"{sentence}; {peer.version} batched {rate(theirs)}, its passes alone; ratios within {away:.0e}.", ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=pathlib.Path, required=True, help="that of the environment where the peers are installed")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("target/release"))
    parser.add_argument("--models", type=pathlib.Path, help="where generated models are kept; the environment's folder if not given")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--format", action="append", choices=FORMATS)
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--peer", action="append", choices=["llama.cpp", "pytorch", "candle"])
    parser.add_argument("--candle", type=pathlib.Path, help="the program that benches/candle builds")
    parser.add_argument("--dry", action="store_true", help="print the tables, but do not append them to RECORD.md")
    arguments = parser.parse_args()
    if not arguments.python.exists():
        print(f"skipped: no peers in {arguments.python}; `make peers` installs them")
        return
    if arguments.candle and not arguments.candle.exists():
        print(f"left out: no candle in {arguments.candle}", file=sys.stderr)
        arguments.candle = None
    arguments.models = arguments.models or arguments.python.absolute().parent.parent / "models"
    arguments.models.mkdir(exist_ok=True)
    make_models(arguments.python, arguments.models)
    sentence = f"A Llama of 245 million weights, {len(PROMPT)} tokens read, then {len(DECODED)} decoded one by one; "
    sentence += f"medians of {arguments.rounds} rounds round the engines. Times are in those of torchless with exact inputs, round by round."
    lines = heading(", transformers", sentence)
    columns = ["weights", "threads", "engine", "decoded/s", "time", "GB/s (share of what can be read)", "read/s", "time", "note"]
    lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for threads in arguments.threads or [1, 2]:
        for kind in arguments.format or FORMATS:
            lines += compare(arguments, kind, threads)
    write(["", *lines, "", *scored(arguments)], arguments.dry)


if __name__ == "__main__":
    sys.exit(main())
