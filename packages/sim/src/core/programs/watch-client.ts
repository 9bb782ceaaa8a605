import { create } from "@bufbuild/protobuf";
import { type WatchResponse, WatchRequestSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { Watches } from "../checkers/watches.js";
import type { CoreWorld, WatchConnection } from "../world/world.js";
import { leasePrefix } from "./mass-leases.js";
import { bytes } from "../world/requests.js";

/** In a response about progress. */
const allWatches = -1n;
/** Before a client goes over to another server, with what it has. */
const stayMeanMs = 8_000;
/** Before the end of a run each client stays where it is: from the oldest change on it needs seconds. */
const lastStayMs = 15_000;

/** Between two questions how far it is, mean. */
const progressMeanMs = 25;

/** Follows a prefix, through one server after another, and misses nothing. */
export class WatchClient {
  readonly #world: CoreWorld;
  readonly #judge: Watches;
  readonly prefix: string;
  readonly #goesBack: boolean;
  /** Where it goes on. */
  #next: number;
  #connection: WatchConnection | undefined;
  #session = 0;

  /** @param goesBack it begins each time with the oldest change that is kept */
  constructor(world: CoreWorld, judge: Watches, prefix: string, goesBack: boolean) {
    this.#goesBack = goesBack;
    this.#world = world;
    this.#judge = judge;
    this.prefix = prefix;
    this.#next = 2;
    // What it has heard of since is lost with the core that has said it.
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
