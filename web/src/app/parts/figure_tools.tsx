// Buttons that save a drawing.

import { useState } from "preact/hooks";

import { savePng, saveSvg } from "../export/figure";

export function FigureTools({ host, label }: { host: { current: HTMLElement | null }; label: string }) {
  const [failed, setFailed] = useState(false);
  const name = label.split(";")[0]!;
  const png = () => {
    if (host.current) savePng(host.current, name).then(() => setFailed(false), () => setFailed(true));
  };
  return (
    <div class="tools" role="group" aria-label={`Save: ${name}`}>
      {failed && <span role="alert">The browser could not make the picture.</span>}
      <button type="button" title="Save this figure as SVG" onClick={() => host.current && saveSvg(host.current, name)}>SVG</button>
      <button type="button" title="Save this figure as PNG" onClick={png}>PNG</button>
    </div>
  );
}
