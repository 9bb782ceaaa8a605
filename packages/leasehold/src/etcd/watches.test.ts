import { EventEmitter } from "node:events";
import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { type AuthenticateResponse, AuthenticateResponseSchema } from "./gen/etcd/auth_pb.js";
import { Event_EventType, EventSchema, KeyValueSchema } from "./gen/etcd/kv_pb.js";
import {
  type WatchCreateRequest,
  type WatchRequest,
  type WatchResponse,
  WatchResponseSchema,
} from "./gen/etcd/rpc_pb.js";
import { VirtualWorld } from "../testing/virtual-world.js";
import type { Connection, Duplex } from "./connection/connection.js";
import type { Entry, WatchListener } from "./core-client.js";
import { Servers } from "./servers.js";
import { Watches } from "./watches.js";

const tokenOver = "etcdserver: invalid auth token";
const denied = "etcdserver: permission denied";
const failed = () => Object.assign(new Error("lost"), { code: 14, details: "lost" });

/** A core with one key whose changes are counted. It answers requests on watch streams as etcd does. */
class FakeCore {
  readonly #world: VirtualWorld;
  readonly streams = new Set<FakeStream>();
  readonly tokens = new Set<string>();
  revision = 1;
  compacted = 0;
  isDenying = false;
  isPasswordRight = true;
  logins = 0;

  constructor(world: VirtualWorld) {
    this.#world = world;
  }

  connection(): Connection {
    return {
      isReady: true,
      ask: <Output>() => this.#authenticated().then((answer) => answer as Output),
      open: <Input extends DescMessage, Output extends DescMessage>(_: unknown, token: string | undefined) =>
        new FakeStream(this, this.#world, token) as unknown as Duplex<
          MessageShape<Input>,
          MessageShape<Output>
        >,
      close: () => undefined,
    };
  }

  async #authenticated(): Promise<AuthenticateResponse> {
    this.logins += 1;
    await new Promise<void>((resolve) => void this.#world.timers.after(3, resolve));
    if (!this.isPasswordRight)
      throw Object.assign(new Error(), { code: 3, details: "authentication failed" });
    const token = `token ${this.logins}`;
    this.tokens.add(token);
    return create(AuthenticateResponseSchema, { token });
  }

  put(): void {
    this.revision += 1;
    for (const stream of this.streams) stream.send();
  }

  endStreams(): void {
    for (const stream of this.streams) stream.end();
  }

  /** Forgets all tokens, and ends its clients' streams. */
  restart(): void {
    this.tokens.clear();
    this.endStreams();
  }
}

class FakeStream extends EventEmitter {
  readonly #core: FakeCore;
  readonly #world: VirtualWorld;
  readonly #token: string | undefined;
  /** The next revision of each watch. */
  readonly watched = new Map<bigint, number>();

  constructor(core: FakeCore, world: VirtualWorld, token: string | undefined) {
    super();
    this.#core = core;
    this.#world = world;
    this.#token = token;
    core.streams.add(this);
  }

  write({ requestUnion }: WatchRequest): boolean {
    this.#world.timers.after(1, () => {
      if (!this.#core.streams.has(this)) return;
      if (requestUnion.case === "createRequest") this.#create(requestUnion.value);
      if (requestUnion.case === "cancelRequest") this.watched.delete(requestUnion.value.watchId);
    });
    return true;
  }

  #create({ startRevision, watchId }: WatchCreateRequest): void {
    const reason = this.#core.tokens.has(this.#token ?? "") ? "" : tokenOver;
    const cancelReason = reason === "" && this.#core.isDenying ? denied : reason;
    const isDuplicate = this.watched.has(watchId);
    if (cancelReason !== "" || isDuplicate) {
      this.#answer({ watchId: -1n, created: true, canceled: true, cancelReason });
      return;
    }
    this.#answer({ watchId, created: true });
    if (startRevision <= BigInt(this.#core.compacted)) {
      this.#answer({ watchId, canceled: true, compactRevision: BigInt(this.#core.compacted + 1) });
      return;
    }
    this.watched.set(watchId, Number(startRevision));
    this.send();
  }

  send(): void {
    for (const [watchId, next] of this.watched) {
      const revisions = Array.from({ length: this.#core.revision + 1 - next }, (_, index) => next + index);
      if (revisions.length === 0) continue;
      this.watched.set(watchId, this.#core.revision + 1);
      const events = revisions.map((revision) =>
        create(EventSchema, {
          type: Event_EventType.PUT,
          kv: create(KeyValueSchema, { modRevision: BigInt(revision) }),
        }),
      );
      this.#answer({ watchId, events });
    }
  }

  #answer(answer: Partial<Omit<WatchResponse, "$typeName">>): void {
    this.emit("data", create(WatchResponseSchema, answer));
  }

  end(): void {
    this.cancel();
    this.emit("error", failed());
  }

  cancel(): void {
    this.#core.streams.delete(this);
  }
}

/** Records the revisions received, and checks that each comes once and in order. */
class Ear implements WatchListener {
  readonly from: number;
  readonly heard: number[] = [];
  since: number;

  constructor(from: number) {
    this.from = from;
    this.since = from;
  }
  written({ modRevision }: Entry): void {
    this.heard.push(Number(modRevision));
  }
  deleted(): void {
    throw new Error("nothing is deleted");
  }
  missed(revision: bigint): void {
    this.since = Number(revision);
  }
}

const key = Uint8Array.of(1);
const rangeEnd = new Uint8Array();

class Ground {
  readonly world = new VirtualWorld();
  readonly core = new FakeCore(this.world);
  readonly watches: Watches;
  readonly live = new Map<Ear, () => void>();

  constructor() {
    const { core, world } = this;
    const login = { name: "ann", password: "secret" };
    const servers = new Servers(["a", "b"], { connect: () => core.connection(), login }, world);
    const entryOf = ({ modRevision }: { modRevision: bigint }) => ({ modRevision }) as Entry;
    this.watches = new Watches(servers, world, entryOf);
  }

  add(): Ear {
    const ear = new Ear(this.core.revision + 1);
    const { stop } = this.watches.add(key, rangeEnd, BigInt(ear.from), ear);
    this.live.set(ear, stop);
    return ear;
  }

  stop(): void {
    const [ear] = this.live.keys();
    if (ear === undefined) return;
    this.live.get(ear)!();
    this.live.delete(ear);
  }

  /** Listeners that missed a revision or received one twice, and streams and watches left over. */
  get wrong(): string[] {
    const ears = [...this.live.keys()];
    const wrong = ears.flatMap(({ heard, since }) => {
      const wanted = Array.from({ length: this.core.revision + 1 - since }, (_, index) => since + index);
      const known = heard.filter((revision) => revision >= since);
      const isInOrder = heard.every((revision, index) => index === 0 || revision > heard[index - 1]!);
      return isInOrder && `${known}` === `${wanted}` ? [] : [`heard ${heard}, expected ${wanted}`];
    });
    const { streams } = this.core;
    const watched = [...streams].flatMap((stream) => [...stream.watched.keys()]);
    if (streams.size > 1) wrong.push(`${streams.size} streams`);
    if (watched.length !== ears.length) wrong.push(`${watched.length} watches at the core of ${ears.length}`);
    return wrong;
  }
}

let ground: Ground;
beforeEach(() => {
  ground = new Ground();
});

test("a watch continues with a new token when its server has forgotten the stream's token", async () => {
  const { core, world } = ground;
  ground.add();
  await world.advance(1_000);
  core.put();
  core.restart();
  core.put();
  await world.advance(5_000);
  core.put();
  expect(core.revision).toBe(4);
  expect(ground.wrong).toEqual([]);
});

test("a watch refused for lack of rights is requested again and again", async () => {
  const { core, world } = ground;
  ground.add();
  await world.advance(1_000);
  core.isDenying = true;
  core.restart();
  core.put();
  await world.advance(30_000);
  core.isDenying = false;
  const { logins } = core;
  await world.advance(5_100);
  expect(core.logins).toBe(logins);
  expect(ground.wrong).toEqual([]);
});

test("a refused watch is requested once on a stream opened since", async () => {
  const { core, world } = ground;
  ground.add();
  await world.advance(1_000);
  core.isDenying = true;
  core.endStreams();
  await world.advance(1_000);
  core.isDenying = false;
  core.endStreams();
  await world.advance(10_000);
  core.put();
  expect(ground.wrong).toEqual([]);
});

test("an answer on a new stream is not matched to a request on the ended one", async () => {
  const { core, world } = ground;
  ground.add();
  await world.advance(1_000);
  core.isDenying = true;
  core.endStreams();
  while (core.streams.size === 0) await world.advance("1ms");
  core.endStreams();
  await world.advance(6_000);
  core.isDenying = false;
  await world.advance(6_000);
  core.put();
  expect(ground.wrong).toEqual([]);
});

test("a core that refuses both token and password is not flooded with requests", async () => {
  const { core, world } = ground;
  ground.add();
  await world.advance(1_000);
  core.isPasswordRight = false;
  core.restart();
  const { logins } = core;
  await world.advance(60_000);
  expect(core.logins - logins).toBeLessThan(120);
  core.isPasswordRight = true;
  await world.advance(5_000);
  expect(ground.wrong).toEqual([]);
});

test("a watch added while a token is renewed waits for the token", async () => {
  const { core, world } = ground;
  ground.add();
  await world.advance(1_000);
  core.restart();
  for (let passedMs = 0; passedMs < 100; passedMs += 1) {
    ground.add();
    await world.advance(1);
  }
  await world.advance(5_000);
  core.put();
  expect(ground.wrong).toEqual([]);
});

test("whatever happens to servers, tokens and rights, each watch receives every change once, in order", async () => {
  const act = fc.oneof(
    { weight: 4, arbitrary: fc.constant("put" as const) },
    { weight: 3, arbitrary: fc.constant("add" as const) },
    {
      weight: 5,
      arbitrary: fc.constantFrom(
        "stop",
        "restart",
        "deny",
        "deny",
        "compact",
        "streams",
        "streams",
        "tokens",
      ),
    },
    { weight: 4, arbitrary: fc.constantFrom(0, 1, 2, 15, 600, 4_999) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 40 }), async (acts) => {
      const own = new Ground();
      const { core, world } = own;
      for (const each of acts) {
        if (typeof each === "number") await world.advance(each);
        else if (each === "put") core.put();
        else if (each === "add") own.add();
        else if (each === "stop") own.stop();
        else if (each === "restart") core.restart();
        else if (each === "deny") core.isDenying = !core.isDenying;
        else if (each === "compact") core.compacted = core.revision;
        else if (each === "tokens") core.tokens.clear();
        else core.endStreams();
      }
      core.isDenying = false;
      await world.advance(15_000);
      core.put();
      await world.advance(5_000);
      expect(own.wrong).toEqual([]);
    }),
    { numRuns: 200 },
  );
});
