// The profile likelihood of a parameter, with the place of the slider.

import type { ReportData } from "../../documents";
import { shortText } from "../../numbers/escape";
import { OneScan } from "../../report/sections/scans";
import { PartFrame } from "../parts/card";
import { useApp, useSelected } from "../parts/context";
import { useMark } from "../parts/live_scan";

export function ScanView({ data }: { data: ReportData }) {
  const { background } = useApp();
  const part = useSelected((state) => state.parts.scan);
  const mark = useMark(part.value);
  const names = data.report.fit.par_names;
  const scanned = part.value?.parameter ?? data.report.fit.poi?.name ?? names[0] ?? "";
  return (
    <section id="scan" aria-labelledby="scan-title">
      <h2 id="scan-title">Profile likelihood</h2>
      <div class="local">
        <label>Parameter{" "}
          <select value={String(names.indexOf(scanned))} onChange={(event) => background.scan(names[Number(event.currentTarget.value)] ?? null)}>
            {names.map((name, i) => <option key={i} value={String(i)}>{shortText(name, 60)}</option>)}
          </select>
        </label>
      </div>
      <PartFrame part={part} what="the scan" run={() => background.run("scan")} cancel={() => background.cancel("scan")}>
        {(scan) => <OneScan scan={scan} mark={mark} />}
      </PartFrame>
    </section>
  );
}
