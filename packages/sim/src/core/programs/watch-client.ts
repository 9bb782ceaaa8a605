import { create } from "@bufbuild/protobuf";
import { type WatchResponse, WatchRequestSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { Watches } from "../checkers/watches.js";
import type { CoreWorld, WatchConnection } from "../world/world.js";
import { leasePrefix } from "./mass-leases.js";
import { bytes } from "../world/requests.js";

/** The id in a progress response. */
const allWatches = -1n;
/** The mean time until a client moves to another server. */
const stayMeanMs = 8_000;
/** Near the end of a run a client stays at its server: reading from the oldest change on takes seconds. */
const lastStayMs = 15_000;

/** The mean pause between two progress requests. */
const progressMeanMs = 25;

/** Watches a prefix through one server after another. It must miss nothing. */
export class WatchClient {
  readonly #world: CoreWorld;
  readonly #judge: Watches;
  readonly prefix: string;
  readonly #goesBack: boolean;
  /** The next revision. */
  #next: number;
  #connection: WatchConnection | undefined;
  #session = 0;

  /** @param goesBack whether it restarts at the oldest kept change each time */
  constructor(world: CoreWorld, judge: Watches, prefix: string, goesBack: boolean) {
    this.#goesBack = goesBack;
    this.#world = world;
    this.#judge = judge;
    this.prefix = prefix;
    this.#next = 2;
    // Later changes were lost with the core that sent them.
    world.whenReplaced((_, keptRevision) => (this.#next = Math.min(this.#next, keptRevision + 1)));
  }

  get next(): number {
    return this.#next;
  }

  begin(): void {
    const { counters, nowMs, plan, random, servers } = this.#world;
    this.#session += 1;
    const session = this.#session;
    this.#connection?.close();
    const again = () => {
      if (session === this.#session) this.begin();
    };
    const heard = (response: WatchResponse) => {
      if (session === this.#session) this.#heard(response);
    };
    this.#connection = this.#world.watch(random.pick(servers), heard, () =>
      this.#world.after(random.exponential(200), again),
    );
    if (this.#connection === undefined) {
      this.#world.after(200, again);
      return;
    }
    const stayMs = random.exponential(stayMeanMs);
    if (nowMs + stayMs + lastStayMs < plan.endMs) this.#world.after(stayMs, again);
    counters.watchResumes += 1;
    if (this.#goesBack) this.#next = Math.max(2, this.#world.reference.state.revisions.compacted);
    const key = bytes(this.prefix);
    const rangeEnd = Uint8Array.from(key);
    rangeEnd[rangeEnd.length - 1]! += 1;
    const value = { key, rangeEnd, startRevision: BigInt(this.#next) };
    this.#connection.send(create(WatchRequestSchema, { requestUnion: { case: "createRequest", value } }));
    if (this.#world.plan.massLeases !== undefined && this.prefix === leasePrefix) this.#askOn(session);
  }

  #askOn(session: number): void {
    this.#world.after(this.#world.random.exponential(progressMeanMs), () => {
      if (session !== this.#session) return;
      this.#connection!.send(
        create(WatchRequestSchema, { requestUnion: { case: "progressRequest", value: {} } }),
      );
      this.#askOn(session);
    });
  }

  #heard({ canceled, compactRevision, events, header, watchId }: WatchResponse): void {
    if (watchId === allWatches) {
      this.#world.counters.watchProgress += 1;
      this.#next = this.#judge.toldOfProgress(this.prefix, this.#next, Number(header!.revision));
      return;
    }
    if (canceled) {
      this.#next = Math.max(this.#next, Number(compactRevision));
      this.begin();
      return;
    }
    this.#world.counters.watchEvents += events.length;
    this.#next = this.#judge.heard(this.prefix, this.#next, events);
  }
}
