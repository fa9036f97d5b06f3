// Writes YAML: lists and objects in blocks, text always quoted.

export type Yaml = string | number | boolean | null | Yaml[] | { [key: string]: Yaml };

// Returns one document of YAML, without the line `---`.
export function toYaml(value: Yaml): string {
  return `${block(value, 0).replace(/^\n/, "")}\n`;
}

function block(value: Yaml, depth: number): string {
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    return value.map((item) => `\n${indent(depth)}- ${nested(item, depth + 1)}`).join("");
  }
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value);
    if (entries.length === 0) return "{}";
    return entries.map(([key, item]) => `\n${indent(depth)}${isPlain(key) ? key : quoted(key)}:${isScalar(item) ? " " : ""}${block(item, depth + 1)}`).join("");
  }
  return scalar(value);
}

// An item of a list begins on the line of its dash.
function nested(item: Yaml, depth: number): string {
  return block(item, depth).replace(/^\n */, "");
}

function isScalar(value: Yaml): boolean {
  return typeof value !== "object" || value === null || Object.keys(value).length === 0;
}

function scalar(value: string | number | boolean | null): string {
  if (typeof value === "string") return quoted(value);
  if (typeof value === "number" && !Number.isFinite(value)) return quoted("-");
  // YAML 1.1 reads `1e-7` as text: a number with a power has a point.
  if (typeof value === "number") return String(value).replace(/^(-?\d+)e/, "$1.0e");
  return String(value);
}

function isPlain(key: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(key) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(key);
}

// Text in double quotes; YAML allows fewer characters as they are than JSON.
function quoted(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function indent(depth: number): string {
  return "  ".repeat(depth);
}
