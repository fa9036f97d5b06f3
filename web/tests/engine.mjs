// Asks the engine in Node: engine.mjs FOLDER, with a task as JSON on standard input.
//
// The task has `files` (paths by name), `open` (an OpenRequest) and `questions`; the answers go to
// standard output as JSON: a document, or an object with `error` and `hint`.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const { default: init, Files, Session, exclusion } = await import(pathToFileURL(join(folder, "nextstat_wasm.js")).href);
await init({ module_or_path: readFileSync(join(folder, "nextstat_wasm_bg.wasm")) });

const task = JSON.parse(readFileSync(0, "utf8"));

function attempt(question) {
  try {
    return question();
  } catch (error) {
    return { error: error.message, hint: error.hint };
  }
}

const files = new Files();
const listed = Object.entries(task.files).map(([name, path]) => attempt(() => JSON.parse(files.add(name, readFileSync(path)))));
const session = attempt(() => Session.open(files, JSON.stringify(task.open)));
let steps = 0;
const answers =
  session instanceof Session
    ? task.questions.map((question) =>
        attempt(() => {
          const begun = performance.now();
          if (question.exclusion) return JSON.parse(exclusion(JSON.stringify(question.exclusion)));
          const document = JSON.parse(session.run(JSON.stringify(question), () => { steps += 1; }));
          const { command, python } = JSON.parse(session.reproduce(JSON.stringify(question)));
          return { document, command, python, milliseconds: performance.now() - begun };
        }),
      )
    : [session];
process.stdout.write(JSON.stringify({ listed, answers, steps }));
