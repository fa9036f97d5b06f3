// Renders everything that is lazy before a page is printed.

import { createContext, options } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";

export const Printing = createContext(false);

// Whether the page is being printed: what is lazy or capped is then shown in full.
export function usePrinting(): boolean {
  return useContext(Printing);
}

// Returns the value for the context `Printing`.
export function usePrintEvents(): boolean {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const media = matchMedia("print");
    const before = () => atOnce(() => setPrinting(true));
    const after = () => setPrinting(media.matches);
    const change = () => (media.matches ? before() : after());
    window.addEventListener("beforeprint", before);
    window.addEventListener("afterprint", after);
    media.addEventListener("change", change);
    change();
    return () => {
      window.removeEventListener("beforeprint", before);
      window.removeEventListener("afterprint", after);
      media.removeEventListener("change", change);
    };
  }, []);
  return printing;
}

// Renders what `change` changes before it returns: the browser prints right after its event.
function atOnce(change: () => void): void {
  const usual = options.debounceRendering;
  options.debounceRendering = (render) => render();
  try {
    change();
  } finally {
    options.debounceRendering = usual;
  }
}
