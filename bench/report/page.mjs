// The report: one HTML file with all charts and, below them, a table of every row.
import { ink, said } from "./style.mjs";

const escaped = (text) =>
  String(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");

const shown = new Set(["figure", "system", "unit", "median", "min", "max", "rounds"]);
const parametersOf = (row) =>
  Object.entries(row)
    .filter(([name]) => !shown.has(name))
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");

const valueOf = (value) =>
  typeof value === "object"
    ? Object.entries(value)
        .map(([name, own]) => `${name} ${own}`)
        .join(", ")
    : value;

function line(row) {
  const range = `${said(row.min)} – ${said(row.max)}`;
  const cells = [row.figure, row.system, said(row.median), range, row.unit, row.rounds, parametersOf(row)];
  return `<tr>${cells.map((cell) => `<td>${escaped(cell ?? "")}</td>`).join("")}</tr>`;
}

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
body { max-width: 840px; margin: 2rem auto; padding: 0 1rem; background: light-dark(#f6f7f9, #0d1117); color: light-dark(${ink.text}, #e6edf3); }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; display: block; overflow-x: auto; }
th, td { text-align: left; padding: 2px 10px 2px 0; border-bottom: 1px solid light-dark(${ink.line}, #30363d); }`;

/** `drawn` is the list of charts as SVG. */
export function page(measured, drawn) {
  const machine = Object.entries(measured.machine).map(
    ([name, value]) => `<li>${escaped(name)}: ${escaped(valueOf(value))}</li>`,
  );
  const headings = ["figure", "system", "median", "least – greatest", "unit", "rounds", "with"];
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Leasehold, measured</title><style>${style}</style></head>
<body>
<h1>Leasehold, measured</h1>
<p>Everything ran on one machine, in turns, on ${escaped(measured.at)}; the program is that of commit ${escaped(measured.commit)}.</p>
<ul>${machine.join("")}</ul>
${drawn.map((svg) => `<figure>${svg}</figure>`).join("\n")}
<h2>All rows</h2>
<table><thead><tr>${headings.map((heading) => `<th>${heading}</th>`).join("")}</tr></thead>
<tbody>
${measured.rows.map(line).join("\n")}
</tbody></table>
</body>
</html>
`;
}
