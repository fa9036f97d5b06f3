// Upper limits with their bands.

import type { ReportData } from "../../documents";
import { Limits } from "../../report/sections/limits";
import { PartFrame } from "../parts/card";
import { useApp, useSelected } from "../parts/context";
import { NoPoi } from "../parts/no_poi";

export function LimitView({ data }: { data: ReportData }) {
  const { background } = useApp();
  const part = useSelected((state) => state.parts.limit);
  if (!data.report.fit.poi) return <NoPoi what="a limit" />;
  return (
    <PartFrame part={part} what="the limit" run={() => background.run("limit")} cancel={() => background.cancel("limit")}>
      {(limit) => <Limits data={{ ...data, limits: [limit] }} />}
    </PartFrame>
  );
}
