// Gives files and text to the reader.

import { strToU8, zipSync } from "fflate";

export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function saveJson(name: string, value: unknown): void {
  save(name, new Blob([`${JSON.stringify(value, null, 2)}\n`], { type: "application/json" }));
}

export function saveZip(name: string, files: ReadonlyMap<string, string>): void {
  save(name, new Blob([zipped(files) as BlobPart], { type: "application/zip" }));
}

// Returns an archive that is the same for the same files.
export function zipped(files: ReadonlyMap<string, string>): Uint8Array {
  const mtime = new Date(1980, 0, 1);
  const entries = [...files].map(([name, text]) => [name, [strToU8(text), { mtime }]] as const);
  return zipSync(Object.fromEntries(entries) as Parameters<typeof zipSync>[0]);
}

// Returns a name of a file from text that may be anything.
export function fileName(text: string): string {
  const plain = text.normalize("NFKD").replace(/[^A-Za-z0-9._-]+/g, "_").replace(/^[._]+|[._]+$/g, "");
  return plain.slice(0, 80) || "figure";
}
