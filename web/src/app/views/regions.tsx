// Data and prediction of all regions, their yields, and how well they agree.

import type { ReportData } from "../../documents";
import { GoodnessOfFit } from "../../report/sections/goodness";
import { Regions } from "../../report/sections/regions";
import { YieldsTable } from "../../report/sections/yields";

export function RegionsView({ data }: { data: ReportData }) {
  return (
    <>
      <Regions data={data} />
      <YieldsTable data={data} />
      <GoodnessOfFit data={data} />
    </>
  );
}
