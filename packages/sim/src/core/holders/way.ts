import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type {
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  WatchRequest,
  WatchResponse,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { ClientRequest } from "@leasehold/core/inner/replica/types.js";
import { CoreError } from "@leasehold/core/inner/state/errors.js";
import type { Connection, Duplex, Method } from "leasehold/inner/etcd/connection/connection.js";
import { serviceError } from "leasehold/inner/etcd/refreshes.js";
import type { SimParty } from "../../kit/party.js";
import type { SimServer } from "../world/server.js";
import type { CoreWorld, Outcome, WatchConnection } from "../world/world.js";

/** Maps a method to a request, as the production server does. */
const kinds: Readonly<Record<string, ClientRequest["kind"]>> = {
  Range: "range",
  Txn: "txn",
  LeaseGrant: "leaseGrant",
  LeaseRevoke: "leaseRevoke",
  LeaseTimeToLive: "leaseTimeToLive",
};

/**
 * A stream that requires a leader survives the loss of its server's leader for this many election timeouts.
 */
const leaderlessFactor = 3;

/** A fault of the connection. */
export interface Trouble {
  /** Nothing arrives before this true time. */
  readonly untilMs: number;
  /**
   * Whether the connection breaks and the client notices. Otherwise the data arrives when the fault is over.
   */
  readonly breaks: boolean;
}

/**
 * One process's connection to one of a core's addresses. To the client this is gRPC: either requests arrive
 * in order and once, late after a fault, or the connection breaks and drops everything in flight.
 */
export class Way implements Connection {
  readonly #world: CoreWorld;
  readonly #party: SimParty;
  readonly #address: number;
  readonly #underWay = new Set<() => void>();
  #cutUntilMs = 0;
  #isBroken = false;

  /** @param address leads to a member of the core, as through a load balancer */
  constructor(world: CoreWorld, party: SimParty, address: number) {
    this.#world = world;
    this.#party = party;
    this.#address = address;
  }

  get #server(): SimServer {
    const members = this.#world.members();
    return members[this.#address % members.length]!;
  }

  get isReady(): boolean {
    return !this.#isBroken && this.#server.isUp;
  }

  cut({ untilMs, breaks }: Trouble): void {
    this.#cutUntilMs = untilMs;
    this.#isBroken = breaks;
    if (breaks) this.close();
    this.#world.at(untilMs, () => (this.#isBroken = false));
  }

  ask<Input extends DescMessage, Output extends DescMessage>(
    { name }: Method<Input, Output>,
    request: MessageShape<Input>,
    _token: string | undefined,
    timeoutMs: number,
  ): Promise<MessageShape<Output>> {
    const kind = kinds[name];
    if (kind === undefined) throw new TypeError(`no client of leases asks for ${name}`);
    return new Promise((resolve, reject) => {
      const fail = (code: number, why: string) => this.#party.awake(() => reject(serviceError(code, why)));
      const broken = () => {
        this.#underWay.delete(broken);
        timer.cancel();
        fail(14, "the connection was dropped");
      };
      const timer = this.#party.timers.after(timeoutMs, () => fail(4, "Deadline exceeded"));
      this.#underWay.add(broken);
      const answered = (outcome: Outcome) => {
        if (outcome === "lost") broken();
        else
          this.#arrive(() => {
            if (!this.#underWay.delete(broken)) return;
            timer.cancel();
            if (outcome instanceof CoreError) fail(outcome.code, outcome.message);
            else
              this.#party.awake(() => resolve(outcome as MessageShape<DescMessage> as MessageShape<Output>));
          });
      };
      if (this.#isBroken) this.#world.after(0, broken);
      else this.call({ kind, request } as unknown as ClientRequest, timeoutMs, answered);
    });
  }

  /** The request is carried out even if the caller gets no answer. */
  call(request: ClientRequest, timeoutMs: number, answered: (outcome: Outcome) => void): void {
    this.#arrive(() =>
      this.#world.call(this.#server, request, answered, undefined, { timeoutMs, wantsLeader: true }),
    );
  }

  open<Input extends DescMessage, Output extends DescMessage>({
    name,
  }: Method<Input, Output>): Duplex<MessageShape<Input>, MessageShape<Output>> {
    const stream = name === "Watch" ? this.#watches() : this.#refreshes();
    return stream as unknown as Duplex<MessageShape<Input>, MessageShape<Output>>;
  }

  close(): void {
    for (const lost of this.#underWay) lost();
  }

  #stream<Request, Answer>(
    write: (request: Request) => void,
    closed: () => void,
  ): SimStream<Request, Answer> {
    const lost = () => {
      this.#party.awake(() => stream.tell("error", serviceError(14, "the connection was dropped")));
      over();
    };
    const over = () => {
      if (!this.#underWay.delete(lost)) return;
      closed();
    };
    const stream = new SimStream<Request, Answer>(this.#party, write, over, lost);
    this.#underWay.add(lost);
    if (this.#isBroken) this.#world.after(0, lost);
    this.#lookForLeader(lost, 0);
    return stream;
  }

  #lookForLeader(lost: () => void, looks: number): void {
    const { electionTicks, tickMs } = this.#world.plan;
    this.#world.after(electionTicks * tickMs, () => {
      if (!this.#underWay.has(lost)) return;
      const { replica } = this.#server;
      const without = replica !== undefined && replica.status().leader === 0n ? looks + 1 : 0;
      if (without >= leaderlessFactor) this.#arrive(lost);
      else this.#lookForLeader(lost, without);
    });
  }

  /** Many in flight, answered in order. */
  #refreshes(): SimStream<LeaseKeepAliveRequest, LeaseKeepAliveResponse> {
    const waiting: { outcome: Outcome | undefined }[] = [];
    const answer = () => {
      for (let outcome = waiting[0]?.outcome; outcome !== undefined; outcome = waiting[0]?.outcome) {
        waiting.shift();
        if (outcome === "lost" || outcome instanceof CoreError) {
          waiting.length = 0;
          stream.lose();
        } else if (outcome.$typeName === "etcdserverpb.LeaseKeepAliveResponse")
          this.#arrive(() => this.#party.awake(() => stream.tell("data", outcome)));
      }
    };
    const write = (request: LeaseKeepAliveRequest) => {
      const refresh: { outcome: Outcome | undefined } = { outcome: undefined };
      waiting.push(refresh);
      this.call({ kind: "leaseKeepAlive", request }, Infinity, (outcome) => {
        refresh.outcome = outcome;
        answer();
      });
    };
    const stream = this.#stream<LeaseKeepAliveRequest, LeaseKeepAliveResponse>(write, () => undefined);
    return stream;
  }

  #watches(): SimStream<WatchRequest, WatchResponse> {
    const heard = (response: WatchResponse) =>
      this.#arrive(() => this.#party.awake(() => stream.tell("data", response)));
    let connection: WatchConnection | undefined;
    const write = (request: WatchRequest) => this.#arrive(() => connection?.send(request));
    const closed = () => this.#world.after(this.#world.plan.latencyMs, () => connection?.close());
    const stream = this.#stream<WatchRequest, WatchResponse>(write, closed);
    connection = this.#world.watch(this.#server, heard, () => stream.lose());
    if (connection === undefined) this.#world.after(0, () => stream.lose());
    return stream;
  }

  /** Arrives now or when the fault is over, in order. */
  #arrive(body: () => void): void {
    if (this.#world.nowMs < this.#cutUntilMs) this.#world.at(this.#cutUntilMs, () => this.#arrive(body));
    else body();
  }
}

type Told = "data" | "end" | "error";

/** The part of a gRPC stream that clients of leases use. */
class SimStream<Request, Answer> {
  readonly write: (request: Request) => void;
  /** The connection breaks. */
  readonly lose: () => void;
  readonly #party: SimParty;
  readonly #over: () => void;
  readonly #listeners = new Map<Told, (told: never) => void>();

  constructor(party: SimParty, write: (request: Request) => void, over: () => void, lose: () => void) {
    this.write = write;
    this.lose = lose;
    this.#party = party;
    this.#over = over;
  }

  on(event: Told, listener: (told: never) => void): this {
    this.#listeners.set(event, listener);
    return this;
  }

  removeAllListeners(event: Told): this {
    this.#listeners.delete(event);
    return this;
  }

  tell(event: "data" | "error", told: Answer | Error): void {
    if (this.#party.isGone) return;
    this.#listeners.get(event)?.(told as never);
  }

  cancel(): void {
    this.#over();
  }
}
