import { type Socket, createServer } from "node:net";
import type { TenureMode } from "../../packages/leasehold/src/testing/history/journals/format.js";
import { Journal, nowNs } from "./journal.js";

/**
 * The protected resource, as a separate process. It keeps the largest token seen for each resource, refuses
 * smaller tokens (from readers, tokens smaller than the largest writer's), and writes each decision to its
 * journal before it answers. It listens on a Unix socket, so that a process without network still reaches it.
 * Its orders are the JSON in the first argument.
 */
export interface GuardOrders {
  readonly run: string;
  readonly journal: string;
  readonly socket: string;
}

/** Request and answer are one JSON line each. */
export interface GuardRequest {
  readonly id: number;
  readonly resource: string;
  readonly token: string;
  readonly mode?: TenureMode | undefined;
}

export interface GuardAnswer {
  readonly id: number;
  readonly result: "accepted" | "refused";
}

class Guard {
  readonly #journal: Journal;
  readonly #largest = new Map<string, bigint>();
  readonly #largestAlone = new Map<string, bigint>();
  readonly #decisions = new Map<string, number>();

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  decide({ id, resource, token: text, mode }: GuardRequest): GuardAnswer {
    const token = BigInt(text);
    const largest = this.#largest.get(resource) ?? 0n;
    const bound = mode === "shared" ? (this.#largestAlone.get(resource) ?? 0n) : largest;
    const order = (this.#decisions.get(resource) ?? 0) + 1;
    const result = token < bound ? "refused" : "accepted";
    if (result === "accepted") {
      if (token > largest) this.#largest.set(resource, token);
      if (mode !== "shared") this.#largestAlone.set(resource, token);
    }
    this.#decisions.set(resource, order);
    this.#journal.write({ event: result, m: nowNs(), resource, token, order, mode });
    return { id, result };
  }

  serve(socket: Socket): void {
    let rest = "";
    socket.setEncoding("utf8");
    socket.on("error", () => undefined); // The client was killed.
    socket.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) socket.write(`${JSON.stringify(this.decide(JSON.parse(line)))}\n`);
    });
  }
}

const orders = JSON.parse(process.argv[2]!) as GuardOrders;
const guard = new Guard(new Journal(orders.journal, orders.run, "guard"));
process.on("disconnect", () => process.exit());
createServer((socket) => guard.serve(socket)).listen(orders.socket, () => process.send?.({ type: "ready" }));
