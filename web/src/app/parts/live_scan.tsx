// Where the slider is in a profile likelihood.

import type { ScanMark } from "../../components/scan";
import { SCAN_HEIGHT, scanChart, scanRange } from "../../components/scan";
import { Chart } from "../../components/chart";
import type { Scan } from "../../documents";
import { escapeText } from "../../numbers/escape";
import { riseOf } from "../state/slider";
import { useSelected } from "./context";

// The conditional fit of the slider, if the scan is of the parameter of interest.
export function useMark(scan: Scan | null): ScanMark | null {
  const conditional = useSelected((state) => (state.slider ? state.conditional : null));
  const free = useSelected((state) => state.overview.value);
  if (!conditional || !free || free.report.fit.poi?.name !== scan?.parameter) return null;
  return { at: conditional.at, rise: riseOf(conditional.report, free.report) };
}

export function LiveScan({ scan }: { scan: Scan }) {
  const { range } = scanRange(scan);
  const mark = useMark(scan);
  return <Chart label={`Profile likelihood of ${escapeText(scan.parameter ?? "")}; the view Scan has its points`} draw={(width) => scanChart(scan, width, range, mark)} inputs={[scan, mark?.at, mark?.rise]} height={SCAN_HEIGHT} />;
}
