// A button that lets the reader choose files.

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

import { useApp } from "../parts/context";

export function OpenFiles({ children, primary }: { children: ComponentChildren; primary?: boolean }) {
  const app = useApp();
  const input = useRef<HTMLInputElement>(null);
  const open = () => {
    const files = [...(input.current?.files ?? [])];
    void app.openFiles(files.map((file) => ({ name: file.webkitRelativePath || file.name, blob: file })));
    if (input.current) input.current.value = "";
  };
  return (
    <>
      <input ref={input} class="hidden-text" type="file" multiple tabIndex={-1} aria-hidden="true" onChange={open} />
      <button type="button" class={primary ? "primary" : undefined} onClick={() => input.current?.click()}>{children}</button>
    </>
  );
}
