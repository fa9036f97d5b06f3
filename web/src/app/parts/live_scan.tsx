// The profile likelihood with a mark where the slider is.

import { Chart } from "../../components/chart";
import { SCAN_HEIGHT, scanChart, scanRange } from "../../components/scan";
import type { Scan } from "../../documents";
import { escapeText } from "../../numbers/escape";
import { useSelected } from "./context";
import { riseOf } from "../state/slider";

export function LiveScan({ scan }: { scan: Scan }) {
  const { range } = scanRange(scan);
  const conditional = useSelected((state) => (state.slider ? state.conditional : null));
  const free = useSelected((state) => state.overview.value);
  const isPoi = free?.report.fit.poi?.name === scan.parameter;
  const mark = conditional && free && isPoi ? { at: conditional.at, rise: riseOf(conditional.data, free) } : null;
  return <Chart label={`Profile likelihood of ${escapeText(scan.parameter ?? "")}; the view Scan has its points`} draw={(width) => scanChart(scan, width, range, mark)} inputs={[scan, mark?.at, mark?.rise]} height={SCAN_HEIGHT} />;
}
