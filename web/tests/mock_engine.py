"""Makes a folder with an engine that answers with stored documents, for development without Rust.

    mock_engine.py FOLDER [N_PARAMETERS]
"""

import json
import sys
from pathlib import Path

WEB = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(WEB), str(WEB / "tests")]

import compose  # noqa: E402
import documents  # noqa: E402

MODULE = """
const DOCUMENTS = %s;
export default async function init() {}
export class Files {
  constructor() { this.entries = []; }
  add(path, bytes) {
    const text = new TextDecoder().decode(bytes);
    if (text.startsWith("{oops")) throw Object.assign(new Error("`" + path + "` is not JSON: expected a key at line 1 column 2"), { hint: "a key has double quotes" });
    this.entries.push({ path, bytes: bytes.length, kind: text.includes('"patches"') ? "patchset" : text.includes('"channels"') ? "pyhf" : "other" });
    return JSON.stringify(this.entries.slice(-1));
  }
  list() { return JSON.stringify(this.entries); }
  patchset() { return JSON.stringify(DOCUMENTS.patchset); }
  free() {}
}
export function exclusion() { throw new Error("no"); }
export class Session {
  static open() { return new Session(); }
  run(text, progress) {
    const { verb, settings = {}, mu } = JSON.parse(text);
    if (verb === "hypotest-toys") for (let i = 0; i <= 20; i += 1) { progress?.(i * 50, 1000); const end = performance.now() + 100; while (performance.now() < end); }
    const found = structuredClone(DOCUMENTS[verb]);
    if (verb === "overview") {
      const at = (settings.fixed ?? {}).mu;
      if (at !== undefined) {
        found.report.fit.twice_nll += ((at - 1) / 0.5) ** 2;
        for (const pull of found.report.pulls) pull.pull += 0.3 * (at - 1);
      }
      if (settings.mask) found.report.yields.channels = found.report.yields.channels.filter(({ channel }) => !settings.mask.includes(channel));
    }
    if (verb === "hypotest") { found.mu = mu; const end = performance.now() + 60; while (performance.now() < end); }
    return JSON.stringify(found);
  }
  reproduce(text) { const { verb } = JSON.parse(text); return JSON.stringify({ command: `nextstat ${verb} workspace.json`, python: `import nextstat\\n\\nmodel = nextstat.load_workspace("workspace.json")` }); }
  free() {}
}
"""


def answers(n_parameters):
    """A document for each verb."""
    given = documents.everything(n_constrained=n_parameters - 3, n_channels=max(3, n_parameters // 20), n_bins=8)
    data = compose.report_data(**given)
    parameters = [{"name": name, "init": 0.0, "bounds": [-5.0, 5.0], "fixed": False, "constraint": "constrained_by_normal", "is_poi": name == "mu"} for name in data["report"]["fit"]["par_names"]]
    channels = [{"name": name, "n_bins": n, "samples": [{"name": sample, "modifiers": [{"name": one["name"], "type": "normsys"} for one in parameters]} for sample in data["inspect"]["samples"]]} for name, n in data["inspect"]["channels"]]
    patches = [{"name": f"signal_{x}_{y}", "values": [x, y]} for x in range(500, 1100, 100) for y in range(0, x, 100)]
    toys = {"mu": 1.0, "CLs_obs": 0.04, "CLs_obs_error": 0.006, "CLs_exp": [0.01, 0.02, 0.05, 0.1, 0.2], "n_toys": [1000, 1000], "seed": 0}
    return {
        "overview": data, "parameters": parameters, "tree": {"channels": channels}, "patchset": {"labels": ["m1", "m2"], "patches": patches},
        "ranking": given["ranking"][0], "scan": given["scans"][0], "limit": given["limits"][0], "fit": data["report"]["fit"],
        "significance": {"Z_obs": 2.1, "p0_obs": 0.018, "Z_exp": 1.8}, "hypotest": {"mu": 1.0, "CLs_obs": 0.03, "CLs_exp": [0.01, 0.02, 0.06, 0.1, 0.2]}, "hypotest-toys": toys,
    }  # fmt: skip


def write(folder, n_parameters):
    """Writes the module into a folder, in the place of the engine."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nextstat_wasm.js").write_text(MODULE % json.dumps(answers(n_parameters)), encoding="utf-8")
    (folder / "nextstat_wasm_bg.wasm").write_bytes(b"\0asm\1\0\0\0")


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 60)
