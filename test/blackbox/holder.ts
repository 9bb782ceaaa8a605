import { pathToFileURL } from "node:url";
import type { Leases, Logger, MemberOptions } from "../../packages/leasehold/src/index.js";
import { Xorshift } from "../../packages/leasehold/src/common/xorshift.js";
import { GuardClient } from "./guard-client.js";
import { Journal, nowNs } from "./journal.js";
import { type Holding, HolderWork } from "./holder-work.js";
import type { Task } from "./tasks.js";

/**
 * A process that takes leases, works under them and writes a journal, as a client or as a member itself. Its
 * orders are the JSON in the first argument.
 */
export interface HolderOrders {
  /** The path of `index.js` of the build to use. */
  readonly library: string;
  readonly run: string;
  /** The holder's name, as members and people see it. */
  readonly name: string;
  /** The name with the number of this start, for the journal. */
  readonly by: string;
  readonly journal: string;
  readonly guard: string;
  readonly tasks: readonly Task[];
  readonly seed: number;
  readonly lookEveryMs: number;
  /** Never waits for a lease but tries again and again, and never renews. */
  readonly greedy: boolean;
  readonly ground:
    | { readonly endpoints: readonly string[] }
    | { readonly member: Omit<MemberOptions, "logger"> };
}

export type HolderNews =
  | { readonly type: "ready"; readonly takeoverMsMax: number }
  | ({ readonly type: "holding" } & Holding);

/** While the cluster is down no member may answer; the process then tries again. */
const openTimeout = "5s";

const orders = JSON.parse(process.argv[2]!) as HolderOrders;
const { open, startMember } = (await import(
  pathToFileURL(orders.library).href
)) as typeof import("../../packages/leasehold/src/index.js");

const { pid } = process;
const journal = new Journal(orders.journal, orders.run, orders.by);
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
process.on("disconnect", () => process.exit());
const tell = (news: HolderNews): void => {
  if (process.connected) process.send?.(news);
};

const logger: Logger = {
  info: () => undefined,
  warn: () => undefined,
  error: (message) => {
    const isAlarm = message.startsWith("clock fault");
    if (isAlarm) journal.write({ event: "alarm", m: nowNs(), pid });
    journal.write({ event: "trouble", m: nowNs(), pid, code: isAlarm ? "CLOCK_FAULT" : "LOG", message });
  },
};

async function openLeases(): Promise<{ leases: Leases; close: () => Promise<void> }> {
  const { ground, name } = orders;
  if ("member" in ground) {
    const member = await startMember({ ...ground.member, logger });
    return { leases: member.leases, close: () => member.close() };
  }
  for (;;) {
    try {
      const leases = await open(...ground.endpoints, { name, logger, timeout: openTimeout });
      return { leases, close: () => leases.close() };
    } catch (error) {
      const { code = "?", message } = error as { code?: string; message: string };
      journal.write({ event: "trouble", m: nowNs(), pid, code, message });
      if (stop.signal.aborted) process.exit();
    }
  }
}

journal.write({ event: "boot", m: nowNs(), pid });
const guard = new GuardClient(orders.guard);
const { leases, close } = await openLeases();
journal.write({ event: "ready", m: nowNs(), pid });
tell({ type: "ready", takeoverMsMax: leases.guarantees.takeoverMsMax });
await Promise.all(
  orders.tasks.map((task, index) => {
    const random = new Xorshift(orders.seed + index * 7_919);
    const onHolding = (holding: Holding): void => tell({ type: "holding", ...holding });
    const { lookEveryMs, greedy } = orders;
    const work = new HolderWork({ leases, task, journal, guard, random, lookEveryMs, greedy, onHolding });
    return work.run(stop.signal);
  }),
);
await close();
guard.close();
process.exit();
