import { Xorshift } from "../../../packages/leasehold/src/common/xorshift.js";
import { CallJournal } from "./call-journal.js";
import { NodeClient } from "./node-client.js";
import { FileWork } from "./work.js";

/**
 * A process whose workers read and write the files. No fault ever strikes it. Its orders are the JSON in the
 * first argument.
 */
export interface ClientOrders {
  readonly journal: string;
  /** The socket of each node, by its name. */
  readonly sockets: Readonly<Record<string, string>>;
  readonly seed: number;
}

/** `prepared`: faults may begin. `finished`: everything has been read, and the nodes may end. */
export interface ClientNews {
  readonly type: "ready" | "prepared" | "finished";
}

/** `stop`: all faults are over, and no new work is to begin. */
export interface ClientOrder {
  readonly type: "stop";
}

const orders = JSON.parse(process.argv[2]!) as ClientOrders;
const tell = (type: ClientNews["type"]): void => void process.send?.({ type } satisfies ClientNews);
const stop = new AbortController();
process.on("message", (order: ClientOrder) => {
  if (order.type === "stop") stop.abort();
});
process.on("disconnect", () => process.exit());
process.on("SIGTERM", () => process.exit());

const nodes = Object.entries(orders.sockets).map(([name, path]) => new NodeClient(name, path));
const random = new Xorshift(orders.seed);
const work = new FileWork({ nodes, journal: new CallJournal(orders.journal), random });
tell("ready");
await work.prepare();
tell("prepared");
await work.run(stop.signal);
await work.finish();
tell("finished");
