import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { logEvents as coreEvents } from "../packages/core/src/server/log-events.js";
import { logEvents as filesEvents } from "../packages/files/src/logs/log-events.js";
import { logEvents as gatewayEvents } from "../packages/gateway/src/logs/log-events.js";
import type { EventCatalogue } from "../packages/leasehold/src/runtime/event-log.js";
import { logEvents as leaseEvents } from "../packages/leasehold/src/runtime/log-events.js";

/** docs/log-events.md is generated from the catalogues: `npm run generate -- logs` writes it anew. */

const head = `# Log events

<!-- npm run generate -- logs -->

\`--log-format json|text\` and \`--log-level debug|info|warn|error\` (\`LEASEHOLD_LOG_FORMAT\`, \`LEASEHOLD_LOG_LEVEL\`) make
\`peer\`, \`files serve\`, \`gateway\`, \`run\`, \`hold\` and \`elect\` log to standard error. Without both, the first three write
warnings and errors as text, the others nothing. \`core\` logs from \`info\` on, to [outputs of its own](cli-core.md).
A program passes a \`logger\` to \`open\` and \`startMember\`, such as that of [\`leasehold/logs\`](api/logs.md).

A JSON line has \`level\`, \`ts\` (UTC), \`event\`, \`msg\` and the fields of the event; a text line has no fields. Ids and
fields are stable, texts of \`msg\` are not. Tokens are decimal strings. Passwords, keys and bearer tokens are never
logged.

**Audit** lines (\`"audit":true\`) are written at every level. \`by\` is the identity that credentials prove: a member, the
subject of a certificate, a user; among peers that share a key the network address, and \`name\` what the participant calls
itself. What others can trigger is logged once a minute for each cause.

`;

const sections = {
  "Leases, members and clients": ["leasehold", leaseEvents],
  "The core": ["core", coreEvents],
  Files: ["files", filesEvents],
  "The gateway": ["gateway", gatewayEvents],
} as const satisfies Readonly<Record<string, readonly [string, EventCatalogue]>>;

function tableOf(events: EventCatalogue): string {
  const rows = Object.entries(events).map(([id, { level, isAudit, fields, help }]) => {
    const shown = isAudit === true ? `${level}, audit` : level;
    return `| \`${id}\` | ${shown} | ${fields.map((field) => `\`${field}\``).join(", ")} | ${help} |`;
  });
  return ["| event | level | fields | meaning |", "|---|---|---|---|", ...rows, ""].join("\n");
}

/** The sources of a package, without tests and the catalogue. */
function sourcesOf(name: string): string[] {
  const folder = fileURLToPath(new URL(`../packages/${name}/src/`, import.meta.url));
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts") && !path.endsWith("log-events.ts"))
    .map((path) => readFileSync(folder + path, "utf8"));
}

test("docs/log-events.md matches the catalogues", async () => {
  const pages = Object.entries(sections).map(([title, [, events]]) => `## ${title}\n\n${tableOf(events)}`);
  await expect(head + pages.join("\n")).toMatchFileSnapshot("../docs/log-events.md");
});

test("each event in a catalogue is emitted by its package", () => {
  for (const [name, events] of Object.values(sections)) {
    const sources = sourcesOf(name);
    const unused = Object.keys(events).filter((id) => !sources.some((text) => text.includes(`"${id}"`)));
    expect([name, unused]).toEqual([name, []]);
  }
});

test("all log calls use events of a catalogue", () => {
  // The compiler lets `EventLog` take no other ids, so no log call may bypass it.
  const past = /\b(?:#?logger|log)\??\.(?:debug|info|warn|error)\(/;
  for (const [name] of Object.values(sections))
    expect(sourcesOf(name).filter((text) => past.test(text))).toEqual([]);
});

test("an event of two packages has the same level in both", () => {
  const all = Object.values(sections).flatMap(([, events]) => Object.entries<EventCatalogue[string]>(events));
  for (const [id, { level, isAudit }] of all)
    for (const [, other] of all.filter(([each]) => each === id))
      expect([id, other.level, other.isAudit]).toEqual([id, level, isAudit]);
});
