"""What comparisons with other engines share: running an engine in its own environment, and writing
the record."""
import datetime
import json
import os
import pathlib
import platform
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ENGINES = ["ns", "root", "pyhf"]
THREAD_SETTINGS = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"]


def add_arguments(parser, cap):
    parser.add_argument("--peers", type=pathlib.Path, default=pathlib.Path(os.environ.get("PEERS_DIR", ".peers")))
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("../shared/data"))
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("target/release"))
    parser.add_argument("--case", action="append")
    parser.add_argument("--engine", action="append", choices=ENGINES)
    parser.add_argument("--cap", type=float, default=cap, help="seconds that one engine may take for one thing")
    parser.add_argument("--dry", action="store_true", help="print the tables, but do not append them to RECORD.md")


def in_own_environment(peers, engine, procedure, workspace, cap, **setting):
    """What the engine's worker measured, or a note that says why there is nothing."""
    python = peers / engine / "bin" / "python"
    if not python.exists():
        return dict(version=engine, note="not installed")
    setting = {"threads": 1, **setting}
    command = [python, HERE / "engines" / "worker.py", engine, procedure, workspace, json.dumps(setting)]
    environment = {**os.environ, **dict.fromkeys(THREAD_SETTINGS, str(setting["threads"]))}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=cap, env=environment)
    except subprocess.TimeoutExpired:
        return dict(version=engine, note=f"stopped after {cap:g} s")
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.split(":")[0].endswith(("Error", "Exception", "error"))]
        return dict(version=engine, note=f"failed: {(lines or ['no message'])[-1].strip()[:160]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def workspace_of(data, case, folder):
    """The case's workspace as one file, with its patches applied; the patches that we have only
    add."""
    entry = json.loads((data / "cases.json").read_text())[case]
    file = data / "workspaces" / f"{entry['file']}.json"
    if not entry["patches"]:
        return file
    document = json.loads(file.read_text())
    for kind, name in entry["patches"]:
        if kind != "file":
            raise ValueError(f"{case}: a patch of the kind {kind} is not applied here")
        for operation in json.loads((data / "workspaces" / f"{name}.json").read_text()):
            add(document, operation)
    made = pathlib.Path(folder) / f"{case}.json"
    made.write_text(json.dumps(document))
    return made


def add(document, operation):
    """One `add` operation of a JSON patch (RFC 6902)."""
    if operation["op"] != "add":
        raise ValueError(f"a patch with {operation['op']} is not applied here")
    *parents, last = operation["path"].split("/")[1:]
    for key in parents:
        document = document[int(key)] if isinstance(document, list) else document[key]
    if isinstance(document, list):
        document.insert(len(document) if last == "-" else int(last), operation["value"])
    else:
        document[last] = operation["value"]


def reference(data, case):
    return json.loads((data / "reference" / f"{case}.json").read_text())["settings"]["default"]


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True).stdout.strip()


def processor():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(line.split("\t: ", 1) if "\t: " in line else line.replace("\t", "").split(": ", 1) for line in lines if ": " in line)
    return f"{fields.get('model name', platform.machine())} (family {fields.get('cpu family', '?')}, model {fields.get('model', '?')})"


def load():
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def heading(what, *sentences):
    changed = ", with changes" if git("status", "--porcelain", "--untracked-files=no", "--", ".", "../crates", "../Cargo.lock") else ""
    machine = f"{processor()}, {os.cpu_count()} cores, {platform.system()}, CPython {platform.python_version()}; load before the run {load()}."
    title = f"## {datetime.date.today().isoformat()}, {git('rev-parse', '--short', 'HEAD')}{changed}{what}"
    return [title, "", machine, *sentences, ""]


def duration(seconds):
    if seconds is None:
        return "–"
    return f"{seconds * 1e3:.3f} ms" if seconds < 0.1 else f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def ratio(seconds, ours):
    if seconds is None or not ours:
        return "–"
    return f"{seconds / ours:,.0f}" if seconds > 10 * ours else f"{seconds / ours:.1f}"


def write(lines, is_dry):
    print("\n".join(lines), flush=True)
    if not is_dry:
        with open(HERE / "RECORD.md", "a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


def scratch():
    return tempfile.TemporaryDirectory(prefix="peers-")
