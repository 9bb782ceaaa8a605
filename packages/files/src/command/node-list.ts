import { Readable } from "node:stream";
import { type Column, exitCode, present, tableLines } from "leasehold/cli";
import type { NodesChange, NodesReport } from "../types.js";
import { nodesType } from "../webdav/nodes.js";
import { textOf } from "./nodes.js";
import { type FilesOptions, filesSettingsOf } from "./settings.js";

const columns: readonly Column[] = [
  { title: "NODE" },
  { title: "ADDRESS", shrinks: true },
  { title: "ZONE" },
  { title: "STATE" },
  { title: "NAMES" },
  { title: "CONTENTS", align: "right" },
];

/** `leasehold files node ls`. */
export const listNodes = (options: FilesOptions): Promise<number> => ask(null, options);

/** `leasehold files node add`, `drain`, `serve`, `remove`, `copies`. */
export const changeNodes = (change: NodesChange, options: FilesOptions): Promise<number> =>
  ask(change, options);

async function ask(change: NodesChange | null, options: FilesOptions): Promise<number> {
  const { nodes, output } = filesSettingsOf(options);
  const text = JSON.stringify(change);
  const body = { bytes: Buffer.byteLength(text), open: () => Readable.from([text]), isRepeatable: true };
  const headers = { "content-type": nodesType };
  const answer = await textOf(await nodes.ask({ method: "POST", path: "", headers, body }));
  const report = JSON.parse(answer) as NodesReport;
  present(output, {
    document: report,
    table: (paint, widthMax) => [
      ...tableLines(
        columns,
        report.nodes
          .toSorted((one, other) => (one.id < other.id ? -1 : 1))
          .map(({ id, address, zone, state, keepsNames, contents }) => [
            { text: id, style: "bold" },
            { text: address },
            { text: zone === "" ? "-" : zone },
            { text: state, style: state === "serving" ? "green" : "yellow" },
            { text: keepsNames ? "yes" : "-" },
            { text: String(contents) },
          ]),
        paint,
        widthMax,
      ),
      paint("dim", `each file that is put is on ${report.copies} nodes`),
    ],
  });
  return exitCode("ok");
}
