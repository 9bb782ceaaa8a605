import { LeaseManager } from "../../packages/leasehold/src/lease/manager/lease-manager.js";
import type { Lease } from "../../packages/leasehold/src/lease/types.js";
import { silent } from "../../packages/leasehold/src/runtime/logger.js";
import { VirtualWorld } from "../../packages/leasehold/src/testing/virtual-world.js";
import { fleaseSettings } from "../../packages/leasehold/src/flease/protocol/settings.js";
import { votersOf } from "../../packages/leasehold/src/flease/views/view.js";
import { cellFunctionVersion } from "../../packages/leasehold/src/flease/protocol/cells.js";
import { defineCluster } from "../../packages/leasehold/src/flease/tcp/cluster.js";
import { discover } from "../../packages/leasehold/src/flease/tcp/discovery.js";
import { FleaseNode } from "../../packages/leasehold/src/flease/tcp/flease-node.js";
import { memberState } from "../../packages/leasehold/src/flease/tcp/status.js";
import type { FiledView } from "../../packages/leasehold/src/flease/views/document.js";
import { FakeNet, Host } from "./fake-net.js";
import { longIds } from "./large-views.js";

/**
 * Members that join, leave, and change ids at one address: the product's own members, clients and connections
 * in virtual time. A test replaces `node:net` by `net` (in `use`).
 */

const settings = { ttlMaxMs: 1_500, maxClockSkewMs: 20, rpcTimeoutMs: 100 };

/** The longest recovery wait of all members, with time to connect again, ms. */
const changeMs = 20_000;
const stepMs = 50;

interface Running {
  readonly node: FleaseNode;
  readonly host: Host;
  readonly port: number;
}

export class ChangingCluster {
  readonly world: VirtualWorld;
  readonly net: FakeNet;
  readonly #ids: readonly string[];
  readonly #founding: readonly string[];
  readonly #ports: readonly number[];
  /** The view files of members, by their ids. */
  readonly files = new Map<string, string>();
  readonly members = new Map<string, Running>();
  readonly clients: FleaseNode[] = [];
  readonly leases: Lease[] = [];
  lost = 0;

  /**
   * @param spares the number of members that may join later, at any free address; there are fewer addresses
   * than ids
   */
  constructor(
    use: (net: FakeNet) => void,
    seed: number,
    count: number,
    spares: number,
    ids = longIds("m", count + spares),
  ) {
    this.world = new VirtualWorld({ seed });
    this.net = new FakeNet(this.world);
    use(this.net);
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

  /** Opens a client as a program does: it asks the current members for the cluster. */
  async openClient(name: string): Promise<FleaseNode | undefined> {
    const host = new Host(this.net, name);
    const claims = {
      role: "client",
      nodeId: name,
      cluster: "",
      configHash: "",
      view: 0,
      cellFunction: cellFunctionVersion,
    } as const;
    const ports = [...this.members.values()].map(({ port }) => port);
    const [found] = await this.net
      .run(host, () => discover(ports.map(addressOf), claims, changeMs, host.world, undefined))
      .catch(() => []);
    if (found === undefined) return undefined;
    return this.net.run(host, () => {
      const { cluster, addresses } = found;
      const node = new FleaseNode({
        world: host.world,
        cluster,
        role: "client",
        nodeId: name,
        logger: silent,
      });
      node.dialMembers(addresses);
      return node;
    });
  }

  /** Waits until `isSo` holds. Resolves with false if it doesn't in time. */
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
    if (!areReady) throw new Error("the members did not become ready");
  }

  /** Lets a client take a lease and keep it. */
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

  /**
   * Asks a member for a change until the change has begun, and waits until all nodes are in the view after
   * it.
   */
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

  /** Waits until the clients are connected to all members again. */
  async areConnected(): Promise<boolean> {
    const count = this.present.length;
    return this.until(() => this.clients.every((client) => client.reachable() === count));
  }

  end(): void {
    for (const { host } of this.members.values()) host.kill();
    for (const client of this.clients) void client.close();
  }
}

export const addressOf = (port: number) => `127.0.0.1:${port}`;
