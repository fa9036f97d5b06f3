#!/usr/bin/env python3
"""Compare `torchless` with llama.cpp and PyTorch on a generated model of 245 million weights, and append what was measured to benches/RECORD.md.

    transformers.py --python .peers/transformers/bin/python --bin target/release [--rounds 7] [--dry]

Every engine reads the same GGUF files. Rounds go round the engines, so that all of them meet the same machine; the best round of each counts.
On one thread a round's time is the elapsed one or the processor's, whichever is shorter: where other programs run, the second is what an idle
machine would show. On several it is the elapsed one: engines that wait by turning round and round would be charged for it. How far the
engines' logits are apart stands in the table. Models stay beside the environment: 2 GB.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import subprocess
import sys

from comparing import HERE, THREAD_SETTINGS, heading, write

SHAPE = dict(hidden=1024, layers=16, heads=16, kv_heads=4, intermediate=2816, vocabulary=32000, context=2048)
SMALL = dict(hidden=32, layers=2, heads=4, kv_heads=2, intermediate=96, vocabulary=68, context=64)
FORMATS = ["F32", "F16", "BF16", "Q8_0", "Q4_0"]
PROMPT = [(index * 7919 + 11) % 32000 for index in range(256)]
DECODED = [(index * 104729 + 5) % 32000 for index in range(24)]


def make_models(python, folder):
    """In the peers' environment, which has the package `gguf`."""
    for name, shape, formats in [("m245", SHAPE, FORMATS), ("small", SMALL, ["F32"])]:
        for kind in formats:
            path = folder / f"{name}-{kind}.gguf"
            if not path.exists():
                print(f"writing {path}", file=sys.stderr, flush=True)
                arguments = json.dumps(dict(path=str(path), kind=kind, **shape))
                subprocess.run([python, HERE / "engines/transformer_model.py", arguments], check=True)


def time_of(elapsed, processor, threads):
    return min(elapsed, processor) if threads == 1 and processor else elapsed


class Peer:
    """An engine in a process of its own, which keeps its model between rounds."""

    def __init__(self, python, name, path, threads):
        environment = {**os.environ, **dict.fromkeys(THREAD_SETTINGS, str(threads))}
        command = [python, HERE / "engines/transformer.py", name, path, str(threads)]
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


def our_round(binary, path, threads):
    """One run of `torchless bench`."""
    command = [binary, "bench", "--model", path, "--threads", str(threads), "--prefill", str(len(PROMPT)), "--decode", str(len(DECODED)), "--json"]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    best = lambda part: time_of(answer[part]["seconds"], answer[part]["processor_seconds"], threads)
    bytes_read = answer["decode"]["bytes_per_second"] * answer["decode"]["seconds"]
    return dict(prefill=best("prefill"), decode=best("decode"), bandwidth=answer["read_bandwidth"], bytes=bytes_read, memory=answer["memory"])


def our_logits(binary, path):
    tokens = ",".join(map(str, PROMPT + DECODED))
    done = subprocess.run([binary, "logits", "--model", path, "--tokens", tokens, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["logits"][-1]


def compare(arguments, kind, threads):
    """One format: rows of the table."""
    path, binary = arguments.models / f"m245-{kind}.gguf", arguments.bin / "torchless"
    names = [name for name in (["llama.cpp", "pytorch"] if kind == "F32" else ["llama.cpp"]) if not arguments.peer or name in arguments.peer]
    peers = [Peer(arguments.python, name, path, threads) for name in names]
    peers = [peer for peer in peers if peer.version]
    rounds = {engine: [] for engine in [None, *peers]}
    for _ in range(arguments.rounds):
        rounds[None].append(our_round(binary, path, threads))
        for peer in peers:
            rounds[peer].append(peer.round())
    ours = our_logits(binary, path)
    best = {engine: {part: min(one[part] for one in some) for part in ("prefill", "decode")} for engine, some in rounds.items()}
    bandwidth = max(one["bandwidth"] for one in rounds[None])
    lines = []
    for engine, times in best.items():
        speed = rounds[None][0]["bytes"] / times["decode"]
        cells = [kind, threads, engine.version if engine else "torchless", f"{len(DECODED) / times['decode']:.1f}"]
        cells += [f"{times['decode'] / best[None]['decode']:.2f}" if engine else "1", f"{speed / 1e9:.1f} ({speed / bandwidth:.2f})"]
        cells += [f"{len(PROMPT) / times['prefill']:.0f}", f"{times['prefill'] / best[None]['prefill']:.2f}" if engine else "1"]
        note = f"logits within {max(abs(a - b) for a, b in zip(ours, engine.ask(logits=[]))):.0e}" if engine else memory_note(rounds[None])
        lines.append(f"| {' | '.join(map(str, [*cells, note]))} |")
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
    peer = Peer(arguments.python, "pytorch", path, 1)
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
    parser.add_argument("--peer", action="append", choices=["llama.cpp", "pytorch"])
    parser.add_argument("--dry", action="store_true", help="print the tables, but do not append them to RECORD.md")
    arguments = parser.parse_args()
    if not arguments.python.exists():
        print(f"skipped: no peers in {arguments.python}; `make peers` installs them")
        return
    arguments.models = arguments.models or arguments.python.absolute().parent.parent / "models"
    arguments.models.mkdir(exist_ok=True)
    make_models(arguments.python, arguments.models)
    sentence = f"A Llama of 245 million weights, {len(PROMPT)} tokens read, then {len(DECODED)} decoded one by one; "
    sentence += f"best of {arguments.rounds} rounds round the engines. Times are in ours."
    lines = heading(", transformers", sentence)
    columns = ["weights", "threads", "engine", "decoded/s", "time", "GB/s (share of what can be read)", "read/s", "time", "note"]
    lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for threads in arguments.threads or [1, 2]:
        for kind in arguments.format or FORMATS:
            lines += compare(arguments, kind, threads)
    write(["", *lines, "", *scored(arguments)], arguments.dry)


if __name__ == "__main__":
    sys.exit(main())
