// From dropped files and addresses to a library that workers can read.

import type { FileEntry, FileKind, Library } from "../engine/protocol";
import { NOTHING_SHARED, type Shared } from "./fragment";
import type { Problem } from "./state";

export interface NamedBlob {
  name: string;
  blob: Blob;
}

const MODELS: ReadonlySet<FileKind> = new Set(["pyhf", "hs3", "histfactory-xml", "card"]);

let libraries = 0;

export function libraryOf(files: readonly NamedBlob[]): Library {
  libraries += 1;
  return { id: libraries, files: files.map(({ name, blob }) => ({ name, blob })) };
}

export function modelsOf(entries: readonly FileEntry[]): FileEntry[] {
  return entries.filter((entry) => MODELS.has(entry.kind));
}

// Returns the files that may be opened: a file that is alone, whatever it is, because then the
// engine says what is wrong with it.
export function openableOf(entries: readonly FileEntry[]): FileEntry[] {
  const models = modelsOf(entries);
  return models.length === 0 && entries.length === 1 && entries[0]!.kind === "other" ? [...entries] : models;
}

// Returns a wish with the workspace and the patch set that it is about, or `null` where the reader
// has to choose. A name that no file has does not matter if there is only one.
export function settled(entries: readonly FileEntry[], wish: Shared | null): Shared | null {
  const sets = patchsetsOf(entries);
  const workspace = pathOf(openableOf(entries), wish?.workspace ?? null);
  const patchset = sets.length === 0 || wish?.patchset === "" ? "" : pathOf(sets, wish?.patchset ?? null);
  return workspace === null || patchset === null ? null : { ...(wish ?? NOTHING_SHARED), workspace, patchset };
}

function pathOf(entries: readonly FileEntry[], name: string | null): string | null {
  const named = entries.find((entry) => entry.path === name);
  return (named ?? (entries.length === 1 ? entries[0] : undefined))?.path ?? null;
}

export function patchsetsOf(entries: readonly FileEntry[]): FileEntry[] {
  return entries.filter((entry) => entry.kind === "patchset");
}

export function patchesOf(entries: readonly FileEntry[]): FileEntry[] {
  return entries.filter((entry) => entry.kind === "patch");
}

// Returns what a kind of file is called.
export function kindName(kind: FileKind): string {
  const names: Record<FileKind, string> = {
    pyhf: "pyhf workspace", hs3: "HS3 document", "histfactory-xml": "HistFactory measurement", card: "Combine data card",
    patchset: "patch set", patch: "JSON patch", root: "ROOT file", other: "unknown",
  };
  return names[kind];
}

// Files or addresses that cannot be opened, and what the reader can do about it.
export class OpeningError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.failure.message);
  }
}

// Fetches a file without telling its server where the reader comes from.
export async function fetchFile(address: string, signal: AbortSignal): Promise<NamedBlob> {
  const url = parse(address);
  let response: Response;
  try {
    response = await fetch(url, { credentials: "omit", referrerPolicy: "no-referrer", mode: "cors", signal });
  } catch {
    // The browser does not say which of the two it is.
    const message = `the server ${url.host} does not allow other pages to read this file, or it cannot be reached`;
    throw new OpeningError({ what: address, failure: { message, hint: "download the file and drop it here" }, download: url.href });
  }
  if (!response.ok) {
    const message = `the server ${url.host} answered ${response.status} ${response.statusText}`.trim();
    throw new OpeningError({ what: address, failure: { message, hint: "check the address" } });
  }
  return { name: nameOf(url), blob: await response.blob() };
}

function parse(address: string): URL {
  try {
    const url = new URL(address, document.baseURI);
    if (url.protocol === "https:" || url.protocol === "http:") return url;
  } catch {
    // Told below.
  }
  throw new OpeningError({ what: address, failure: { message: `\`${address}\` is not an address of a file`, hint: "an address begins with https://" } });
}

function nameOf(url: URL): string {
  const last = url.pathname.split("/").filter(Boolean).at(-1) ?? "download";
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

// Returns the files of a drop, those in folders included, with their paths.
export async function droppedFiles(data: DataTransfer): Promise<NamedBlob[]> {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.() ?? null);
  const plain = [...data.files].map((file) => ({ name: file.name, blob: file }));
  if (!entries.some((entry) => entry?.isDirectory)) return plain;
  const found = await Promise.all(entries.map((entry) => (entry ? filesOf(entry) : [])));
  return found.flat();
}

async function filesOf(entry: FileSystemEntry): Promise<NamedBlob[]> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [{ name: entry.fullPath.replace(/^\//, ""), blob: file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: NamedBlob[] = [];
  for (;;) {
    // A reader gives a part at a time, and an empty one at the end.
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (part.length === 0) return found;
    found.push(...(await Promise.all(part.map(filesOf))).flat());
  }
}
