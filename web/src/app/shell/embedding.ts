// Tells a page that embeds this one how high it is.

import { useEffect, useState } from "preact/hooks";

import { isEmbedded } from "../state/address";

export function useEmbedding(): boolean {
  const [embedded] = useState(isEmbedded);
  useEffect(() => {
    if (!embedded || window.parent === window) return undefined;
    const sizes = new ResizeObserver(() => {
      const height = Math.ceil(document.documentElement.getBoundingClientRect().height);
      // The embedding page may be of any origin, and a height is no secret.
      window.parent.postMessage({ type: "nextstat-height", height }, "*");
    });
    sizes.observe(document.body);
    return () => sizes.disconnect();
  }, [embedded]);
  return embedded;
}
