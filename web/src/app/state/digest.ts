// The digest of the open workspace with its patches, as documents have it in their provenance.

import type { ReportData } from "../../documents";

export function digestOf(data: ReportData): string | null {
  const workspace = data.report.provenance?.workspace as { digest?: string } | null | undefined;
  return workspace?.digest ?? null;
}
