// Takes files that are dropped anywhere on the page.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { useApp } from "../parts/context";
import { droppedFiles } from "../state/loading";

export function DropZone({ children }: { children: ComponentChildren }) {
  const app = useApp();
  const [depth, setDepth] = useState(0);
  const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
  const enter = (event: DragEvent) => hasFiles(event) && setDepth((n) => n + 1);
  const leave = (event: DragEvent) => hasFiles(event) && setDepth((n) => Math.max(0, n - 1));
  const over = (event: DragEvent) => {
    if (hasFiles(event)) event.preventDefault();
  };
  const drop = (event: DragEvent) => {
    if (!event.dataTransfer || !hasFiles(event)) return;
    event.preventDefault();
    setDepth(0);
    void droppedFiles(event.dataTransfer).then((files) => app.openFiles(files));
  };
  return (
    <div class={depth > 0 ? "drop over" : "drop"} onDragEnter={enter} onDragLeave={leave} onDragOver={over} onDrop={drop}>
      {children}
      {depth > 0 && <div class="drop-hint" aria-hidden="true"><p>Drop to open</p></div>}
    </div>
  );
}
