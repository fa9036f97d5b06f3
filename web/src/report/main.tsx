// Starts the report: reads the data of the page and renders it.

import { render } from "preact";

import type { ReportData } from "../documents";
import { Page } from "./page";

const data = JSON.parse(document.getElementById("report-data")!.textContent!) as ReportData;
const root = document.getElementById("report")!;
root.replaceChildren();
render(<Page data={data} />, root);
