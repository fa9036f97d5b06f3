// Keeps the files of the page, so that it works without a network: each is fetched once for each of
// its contents, and compared with its digest.

// Paths of the files and their digests as `sha256-…`; the build writes them.
declare const FILES: [string, string][];
// A digest of all of them.
declare const VERSION: string;

interface LifeEvent extends Event {
  waitUntil(promise: Promise<unknown>): void;
}

interface RequestEvent extends LifeEvent {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}

interface Scope {
  readonly registration: { readonly scope: string };
  readonly clients: { claim(): Promise<void> };
  addEventListener(type: "install" | "activate", listener: (event: LifeEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: RequestEvent) => void): void;
}

const scope = globalThis as unknown as Scope;
const PREFIX = "nextstat-";
const CACHE = PREFIX + VERSION;
const PLACES = new Map(FILES.map(([path, digest]) => [new URL(path, scope.registration.scope).href, digest]));
const HOME = new URL("index.html", scope.registration.scope).href;

scope.addEventListener("install", (event) => event.waitUntil(install()));
scope.addEventListener("activate", (event) => event.waitUntil(activate()));
scope.addEventListener("fetch", (event) => {
  const place = placeOf(event.request);
  if (place !== null) event.respondWith(answer(place, event.request));
});

// A new version waits until no page of the old one is open: a page and its workers belong together.
async function install(): Promise<void> {
  const cache = await caches.open(CACHE);
  await Promise.all([...PLACES].map(async ([place, digest]) => {
    const kept = await caches.match(keyOf(place, digest));
    await cache.put(keyOf(place, digest), kept ?? (await fetched(place, digest)));
  }));
}

// The address of a file in the cache, which changes with its contents.
function keyOf(place: string, digest: string): string {
  return `${place}?${encodeURIComponent(digest)}`;
}

async function fetched(place: string, integrity: string): Promise<Response> {
  const response = await fetch(place, { cache: "no-cache", integrity });
  if (!response.ok) throw new Error(`${place}: ${response.status}`);
  // A browser refuses to open a page with a response that was redirected, as `index.html` often is.
  return response.redirected ? new Response(response.body, { status: response.status, headers: response.headers }) : response;
}

async function activate(): Promise<void> {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith(PREFIX) && name !== CACHE).map((name) => caches.delete(name)));
  await scope.clients.claim();
}

// Returns which file of the page is wanted; `null` for what is not one.
function placeOf(request: Request): string | null {
  if (request.method !== "GET") return null;
  const url = new URL(request.url);
  const place = url.origin + url.pathname;
  if (place === scope.registration.scope) return HOME;
  return PLACES.has(place) ? place : null;
}

async function answer(place: string, request: Request): Promise<Response> {
  const kept = await caches.match(keyOf(place, PLACES.get(place)!), { ignoreVary: true });
  return kept ?? fetch(request);
}
