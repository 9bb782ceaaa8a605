import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { effort } from "../../../test/support/effort.js";
import { FakeNet, Host } from "../../../test/support/fake-net.js";
import { longIds } from "../../../test/support/large-views.js";
import { LeaseManager } from "../../lease/manager/lease-manager.js";
import type { Lease } from "../../lease/types.js";
import { silent } from "../../runtime/logger.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { cellFunctionVersion } from "../protocol/cells.js";
import { fleaseSettings } from "../protocol/settings.js";
import { votersOf } from "../protocol/views.js";
import { defineCluster } from "./cluster.js";
import { discover } from "./discovery.js";
import { FleaseNode } from "./flease-node.js";
import { memberState } from "./status.js";
import type { FiledView } from "./view-notes.js";

/**
 * Members that come, go, and change ids at one address while clients hold leases: the product's own members,
 * clients and connections in virtual time. Nothing else goes wrong, so no client may lose a lease, or a
 * member.
 */

const fake = vi.hoisted(() => ({ net: undefined as unknown }));
vi.mock("node:net", async (original) => ({
  ...(await original<object>()),
  connect: (options: never) => (fake.net as FakeNet).connect(options),
  createServer: (accept: never) => (fake.net as FakeNet).createServer(accept),
}));

const settings = { ttlMaxMs: 1_500, maxClockSkewMs: 20, rpcTimeoutMs: 100 };

/** All members wait this long at most, and connections are made anew, ms. */
const changeMs = 20_000;
const stepMs = 50;

interface Running {
  readonly node: FleaseNode;
  readonly host: Host;
  readonly port: number;
}

class Run {
  readonly world: VirtualWorld;
  readonly net: FakeNet;
  readonly #ids: readonly string[];
  readonly #founding: readonly string[];
  readonly #ports: readonly number[];
  /** What members have written down, by their ids. */
  readonly files = new Map<string, string>();
  readonly members = new Map<string, Running>();
  readonly clients: FleaseNode[] = [];
  readonly leases: Lease[] = [];
  lost = 0;

  /** @param spares that may come later, to any address that is free; there are fewer than ids */
  constructor(seed: number, count: number, spares: number, ids = longIds("m", count + spares)) {
    this.world = new VirtualWorld({ seed });
    this.net = new FakeNet(this.world);
    fake.net = this.net;
    this.#ids = ids;
    this.#founding = ids.slice(0, count);
    this.#ports = ids.map((_, index) => index + 1).slice(0, Math.max(count + spares - 1, count + 1));
    this.net.route = (_from, port) => {
      const there = [...this.members.values()].find((member) => member.port === port);
      return there?.host.alive === true ? there.host : undefined;
    };
  }

  pick<T>(among: readonly T[]): T {
    return among[Math.floor(this.world.random.next() * among.length)]!;
  }

  #cluster() {
    const addresses = Object.fromEntries(this.#founding.map((id, index) => [id, addressOf(index + 1)]));
    return defineCluster("test", fleaseSettings({ ...settings, members: this.#founding }), addresses);
  }

  #node(host: Host, role: "member" | "client", nodeId: string, port?: number): FleaseNode {
    const cluster = this.#cluster();
    if (port !== undefined && !this.#founding.includes(nodeId)) cluster.learn(nodeId, addressOf(port));
    const file = {
      path: nodeId,
      read: () => {
        const text = this.files.get(nodeId);
        return text === undefined ? undefined : (JSON.parse(text) as FiledView);
      },
      write: (view: FiledView) => void this.files.set(nodeId, JSON.stringify(view)),
    };
    const state = this.#founding.includes(nodeId) ? ("new" as const) : undefined;
    const viewKeeping = role === "member" ? { file, state } : undefined;
    return new FleaseNode({
      world: host.world,
      cluster,
      role,
      nodeId,
      logger: silent,
      viewKeeping,
    });
  }

  startMember(id: string, port: number): void {
    const host = new Host(this.net, id);
    this.net.run(host, () => {
      const node = this.#node(host, "member", id, port);
      this.members.set(id, { node, host, port });
      void node.listen(addressOf(port));
      node.dialMembers();
    });
  }

  startClient(name: string): FleaseNode {
    const host = new Host(this.net, name);
    return this.net.run(host, () => {
      const node = this.#node(host, "client", name);
      node.dialMembers();
      this.clients.push(node);
      return node;
    });
  }

  /** Until it is so; false if it does not come. */
  async until(isSo: () => boolean, mostMs = changeMs): Promise<boolean> {
    for (let waitedMs = 0; waitedMs < mostMs; waitedMs += stepMs) {
      if (isSo()) return true;
      await this.world.advance(stepMs);
    }
    return isSo();
  }

  async begin(): Promise<void> {
    for (const [index, id] of this.#founding.entries()) this.startMember(id, index + 1);
    const isReady = ({ node }: Running) => memberState(node) === "ready";
    const areReady = await this.until(() => [...this.members.values()].every(isReady));
    if (!areReady) throw new Error("the members do not get ready");
  }

  /** A client takes a lease for good. */
  async hold(client: FleaseNode, resource: string): Promise<void> {
    const leases = new LeaseManager(client.provider, this.world);
    let lease: Lease | undefined;
    leases.acquire(resource, { wait: "10s" }).then(
      (acquired) => (lease = acquired),
      () => undefined,
    );
    await this.until(() => lease !== undefined);
    if (lease === undefined) throw new Error(`nobody gets ${resource}`);
    lease.signal.addEventListener("abort", () => (this.lost += 1));
    this.leases.push(lease);
  }

  get present(): readonly string[] {
    const numbers = [...this.members.values()].map(({ node }) => node.peer.views.view);
    return votersOf(numbers.toSorted((one, other) => other.number - one.number)[0]!);
  }

  freePort(): number {
    const taken = new Set([...this.members.values()].map(({ port }) => port));
    return this.pick(this.#ports.filter((port) => !taken.has(port)));
  }

  spare(): string {
    return this.pick(this.#ids.filter((id) => !this.members.has(id)));
  }

  /** Asks a member for a change until it has begun, and waits until everybody is in the view after it. */
  async change(by: string, change: { add?: string; remove?: string }): Promise<boolean> {
    const { node } = this.members.get(by)!;
    const before = node.peer.views.view.number;
    const address = change.add === undefined ? undefined : addressOf(this.members.get(change.add)!.port);
    const client = this.clients[0]!;
    const voters = () => client.cluster.settings.members;
    let isAsking = false;
    const ask = () => {
      const link = client.link(voters().indexOf(by));
      if (isAsking || link === undefined || node.peer.views.view.number > before) return;
      isAsking = true;
      client.transport
        .call(link, "change", { ...change, ...(address && { address }) }, 5_000)
        .catch(() => undefined)
        .finally(() => (isAsking = false));
    };
    const isOver = () => {
      ask();
      const nodes = [...this.members.values()].map((member) => member.node);
      return [...nodes, ...this.clients].every(
        ({ peer }) => peer.views.view.number >= before + 2 && peer.views.view.before === undefined,
      );
    };
    const done = await this.until(isOver, 3 * changeMs);
    if (change.remove !== undefined) this.stop(change.remove);
    return done;
  }

  stop(id: string): void {
    this.members.get(id)!.host.kill();
    this.members.delete(id);
  }

  /** Clients are connected with all members again. */
  async areConnected(): Promise<boolean> {
    const count = this.present.length;
    return this.until(() => this.clients.every((client) => client.reachable() === count));
  }

  end(): void {
    for (const { host } of this.members.values()) host.kill();
    for (const client of this.clients) void client.close();
  }
}

const addressOf = (port: number) => `127.0.0.1:${port}`;

// What keeps a process alive as long as its transport is open.
beforeEach(() => void vi.spyOn(globalThis, "setInterval").mockImplementation((() => undefined) as never));
afterEach(() => void vi.restoreAllMocks());

test("clients keep their leases when the last of many members with the longest ids begins a change", async () => {
  // A joint view of 24 is longer than a client's call may be.
  const run = new Run(1, effort > 1 ? 40 : 24, 1);
  await run.begin();
  for (const name of ["x", "y"]) await run.hold(run.startClient(name), name);
  const spare = run.spare();
  run.startMember(spare, run.freePort());
  const first = run.present[0]!;
  expect(await run.change(run.present.at(-1)!, { add: spare, remove: first })).toBe(true);
  expect(await run.areConnected()).toBe(true);
  expect([run.lost, run.leases.every((lease) => lease.remaining() > 0)]).toEqual([0, true]);
  run.end();
}, 300_000);

test("clients keep leases and members while members come, go, and change ids at one address", async () => {
  let sameAddress = 0;
  for (let seed = 1; seed <= 6 * effort; seed += 1) {
    const run = new Run(seed, 3, 3, ["a", "b", "c", "d", "e", "f"]);
    const wereAt = new Map(["a", "b", "c"].map((id, index) => [index + 1, id]));
    await run.begin();
    for (const name of ["x", "y"]) await run.hold(run.startClient(name), name);
    for (let changes = 0; changes < 8; changes += 1) {
      const removed = run.pick(run.present);
      const { length } = run.present;
      const kind =
        length <= 2 ? "grows" : length >= 4 ? "shrinks" : run.pick(["grows", "shrinks", "replaces"]);
      const add = kind === "shrinks" ? undefined : run.spare();
      if (add !== undefined) {
        const port = run.freePort();
        if ((wereAt.get(port) ?? add) !== add) sameAddress += 1;
        wereAt.set(port, add);
        run.startMember(add, port);
      }
      const change = { ...(add !== undefined && { add }), ...(kind !== "grows" && { remove: removed }) };
      const by = run.pick(run.present.filter((id) => id !== removed));
      expect([seed, changes, await run.change(by, change)]).toEqual([seed, changes, true]);
      expect([seed, changes, await run.areConnected(), run.lost]).toEqual([seed, changes, true, 0]);
    }
    run.end();
  }
  expect(sameAddress).toBeGreaterThan(5);
}, 300_000);

test("a client that is given all addresses takes the newest view, whichever member answers first", async () => {
  const run = new Run(1, 1, 3, ["a", "b", "c", "d"]);
  await run.begin();
  await run.hold(run.startClient("x"), "x");
  for (const id of ["b", "d"]) {
    run.startMember(id, run.freePort());
    expect(await run.change("a", { add: id })).toBe(true);
  }
  const ports = [...run.members.values()].map(({ port }) => port);
  // It has lost what it had kept.
  const [first] = [...run.members];
  run.stop(first![0]);
  run.files.delete(first![0]);
  run.startMember(first![0], first![1].port);
  const taken: number[] = [];
  for (const order of [ports, ports.toReversed(), [ports[1]!, ports[0]!, ports[2]!]]) {
    const host = new Host(run.net, `client ${taken.length}`);
    const claims = {
      role: "client",
      nodeId: "client",
      cluster: "",
      configHash: "",
      view: 0,
      cellFunction: cellFunctionVersion,
    } as const;
    run.net.run(host, () => {
      void discover(order.map(addressOf), claims, 5_000, host.world, undefined).then(([found]) =>
        taken.push(votersOf(found!.cluster.current!.view).length),
      );
    });
    const count = taken.length;
    expect(await run.until(() => taken.length > count)).toBe(true);
  }
  expect(taken).toEqual([3, 3, 3]);
  run.end();
}, 300_000);
