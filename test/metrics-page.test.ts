import { expect, test } from "vitest";
import { filesCatalogue } from "@leasehold/files/inner/metrics/catalogue.js";
import { gatewayCatalogue } from "@leasehold/gateway/inner/metrics/catalogue.js";
import { catalogue, fullName } from "leasehold/inner/metrics/catalogue.js";
import type { MetricDefinitions } from "leasehold/metrics";

/** docs/metrics.md is generated from the catalogues: `npm run generate -- metrics` writes it anew. */

const head = `# Metrics

<!-- npm run generate -- metrics -->

A program serves them with [\`leasehold/metrics\`](api/metrics.md). \`peer\`, \`gateway\`, \`files serve\`, \`run\`, \`hold\` and \`elect\` do so
with \`--metrics-address 127.0.0.1:9464\`, \`up\` and \`files up\` with \`--metrics-port 9464\`. A core has its own at \`/metrics\` of its client port, under
[etcd's names](core-compatibility.md#json-health-and-metrics).

\`/livez\` is 200 as long as the process answers, and \`/readyz\` (also \`/healthz\`) as long as its member has a vote; else
503 and why. Restart a process only for \`/livez\`: a member that recovers would begin its wait again.
\`/readyz?verbose\` lists every check. A node of files is ready when its disk works, it has joined, and a majority of the
nodes that keep the names answers.

No label is the name of a resource, and a metric has at most 200 series. In OpenMetrics, buckets have the name of a
recent resource as an exemplar.

`;

const filesHead = `
## Nodes of files

\`files serve\` has these, too.

`;

const gatewayHead = `
## Gateways

\`gateway\` has these, too. Its \`/readyz\` asks the ground.

`;

const traces = `
## Traces

[\`leasehold/traces\`](api/traces.md) makes spans of the leases that a program acquires, with the tracer it is given:

\`\`\`ts
import { trace } from "@opentelemetry/api";
import { open } from "leasehold";
import { traceLeases } from "leasehold/traces";

const leases = await open("memory:traced");
traceLeases(leases, trace.getTracer("reports"));
await leases.using("reports/nightly", () => trace.getActiveSpan()?.setAttribute("reports", 12));
\`\`\`

| span | from | to |
|---|---|---|
| \`leasehold.acquire\` | the call | its lease or error; the event \`wait\` when another has the lease |
| \`leasehold.using\`, \`leasehold.lead\` | the call; each campaign | the release; the work runs inside |
| \`leasehold.renew\` | less than a third of the ttl is left, or a renewal failed | renewed, lost or released |
| \`leasehold.release\`, \`leasehold.detach\` | the call | the ground was notified |

Each is a child of the span that is active at its beginning; \`leasehold.renew\` belongs to the caller of its \`acquire\`. An error sets the status, and
\`error.type\` to its code. \`leasehold.acquire\` has links to the spans of the holders that it waited for: a sampled lease
without \`data\` of its own has \`{ "traceparent": "00-…" }\` as its data. Put a \`traceparent\` into data of your own to be linked, too.
`;

const rowsOf = (definitions: MetricDefinitions): string =>
  Object.entries(definitions)
    .map(([name, definition]) => {
      const { help, kind, labels } = definition;
      const full = fullName(name, definition) + (kind === "counter" ? "_total" : "");
      return `| \`${full}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help} |`;
    })
    .join("\n");

const tableHead = "| metric | type | labels | meaning |\n|---|---|---|---|\n";

test("docs/metrics.md matches the catalogues", async () => {
  const text = `${head}${tableHead}${rowsOf(catalogue)}\n${filesHead}${tableHead}${rowsOf(filesCatalogue)}\n${gatewayHead}${tableHead}${rowsOf(gatewayCatalogue)}\n${traces}`;
  await expect(text).toMatchFileSnapshot("../docs/metrics.md");
});
