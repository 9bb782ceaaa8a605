import { expect, test } from "vitest";
import {
  catalogue,
  type Definition,
  fullName,
  type MetricName,
} from "../packages/leasehold/src/metrics/catalogue.js";

/** docs/metrics.md is made of the catalogue: `npm run generate -- metrics` writes it anew. */

const head = `# Metrics

Made of the catalogue in \`packages/leasehold/src/metrics\`; \`npm run generate -- metrics\` writes it anew.

A program serves them with [\`leasehold/metrics\`](api/metrics.md). \`peer\`, \`run\`, \`hold\` and \`elect\` do so with
\`--metrics-address 127.0.0.1:9464\`. A core has its own at \`/metrics\` of its client port, under
[etcd's names](core-compatibility.md#json-health-and-metrics).

\`/livez\` is 200 as long as the process answers, and \`/readyz\` (also \`/healthz\`) as long as its member has a vote; else
503 and why. Restart a process only for \`/livez\`: a member that recovers would begin its wait again.
\`/readyz?verbose\` lists every check.

No label is the name of a resource, and a metric has at most 200 series. In OpenMetrics, buckets have the name of a
recent resource as an exemplar.

`;

const rows = (Object.keys(catalogue) as MetricName[]).map((name) => {
  const { help, kind, labels }: Definition = catalogue[name];
  const full = kind === "counter" ? `${fullName(name)}_total` : fullName(name);
  return `| \`${full}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help} |`;
});

test("docs/metrics.md is that of the catalogue", async () => {
  const table = ["| metric | type | labels | meaning |", "|---|---|---|---|", ...rows, ""].join("\n");
  await expect(head + table).toMatchFileSnapshot("../docs/metrics.md");
});
