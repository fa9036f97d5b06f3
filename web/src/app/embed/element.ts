// The element `<nextstat-view src="…">`: shows a model in another page, as high as it needs.
//
// Attributes: `src` (the file; several with spaces between), `view`, `patch`, `measurement`,
// `theme`.

const ATTRIBUTES = ["src", "view", "patch", "measurement", "theme"] as const;
const MIN_HEIGHT = 240;
// The page of the app is beside this script, which is not a module, so that any page may load it.
const script = document.currentScript ?? document.querySelector('script[src*="embed.js"]');
const PAGE = new URL("index.html", (script as HTMLScriptElement).src);

class NextstatView extends HTMLElement {
  static readonly observedAttributes = ATTRIBUTES;
  private readonly frame = document.createElement("iframe");
  private readonly listen = (event: MessageEvent) => this.resize(event);

  constructor() {
    super();
    const style = document.createElement("style");
    style.textContent = ":host { display: block; } iframe { display: block; width: 100%; border: 0; }";
    this.frame.title = "nextstat";
    this.frame.style.height = `${MIN_HEIGHT}px`;
    this.frame.loading = "lazy";
    this.frame.allow = "clipboard-write";
    this.attachShadow({ mode: "open" }).append(style, this.frame);
  }

  connectedCallback(): void {
    window.addEventListener("message", this.listen);
    this.show();
  }

  disconnectedCallback(): void {
    window.removeEventListener("message", this.listen);
  }

  attributeChangedCallback(): void {
    if (this.isConnected) this.show();
  }

  private show(): void {
    const values = new URLSearchParams();
    for (const source of (this.getAttribute("src") ?? "").split(/\s+/).filter(Boolean)) values.append("url", new URL(source, document.baseURI).href);
    for (const name of ATTRIBUTES.slice(1)) {
      const value = this.getAttribute(name);
      if (value !== null) values.set(name, value);
    }
    values.set("embed", "1");
    this.frame.src = `${PAGE.href}#${values.toString()}`;
  }

  private resize(event: MessageEvent): void {
    if (event.source !== this.frame.contentWindow || event.origin !== PAGE.origin) return;
    const { type, height } = (event.data ?? {}) as { type?: unknown; height?: unknown };
    if (type !== "nextstat-height" || typeof height !== "number" || !Number.isFinite(height)) return;
    this.frame.style.height = `${Math.min(Math.max(height, MIN_HEIGHT), 20_000)}px`;
  }
}

if (!customElements.get("nextstat-view")) customElements.define("nextstat-view", NextstatView);
