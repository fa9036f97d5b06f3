// The ranking of nuisance parameters.

import type { ReportData } from "../../documents";
import { Rankings } from "../../report/sections/ranking";
import { PartFrame } from "../parts/card";
import { useApp, useSelected } from "../parts/context";
import { NoPoi } from "../parts/no_poi";

export function RankingView({ data }: { data: ReportData }) {
  const { background } = useApp();
  const part = useSelected((state) => state.parts.ranking);
  if (!data.report.fit.poi) return <NoPoi what="a ranking" />;
  return (
    <PartFrame part={part} what="the ranking" run={() => background.run("ranking")} cancel={() => background.cancel("ranking")}>
      {(ranking) => <Rankings data={{ ...data, ranking: [ranking] }} />}
    </PartFrame>
  );
}
