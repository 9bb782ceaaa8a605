import { afterEach, describe, expect, test } from "vitest";
import { fleaseSettings } from "../protocol/settings.js";
import { LeaseManager } from "../../lease/manager/lease-manager.js";
import type { World } from "../../common/ports.js";
import { defineCluster } from "./cluster.js";
import { FleaseNode, type FleaseNodeOptions } from "./flease-node.js";
import { silent } from "../../runtime/logger.js";
import { memberStatus } from "./status.js";
import { realWorld } from "../../runtime/world.js";

/** The driver of a peer in the real world, except for a wall clock that a test can set. */

const settings = (members: readonly string[]) =>
  fleaseSettings({ members, ttlMaxMs: 400, maxClockSkewMs: 20, rpcTimeoutMs: 50 });

function steppedWorld(): World & { stepMs: number } {
  const real = realWorld();
  const world = {
    ...real,
    stepMs: 0,
    clock: {
      monotonicMs: () => real.clock.monotonicMs(),
      wallMs: () => real.clock.wallMs() + world.stepMs,
    },
  };
  return world;
}

function nodeOf(world: World, members: readonly string[], more: Partial<FleaseNodeOptions> = {}): FleaseNode {
  const addresses = Object.fromEntries(members.map((id) => [id, "127.0.0.1:1"]));
  const cluster = defineCluster("test", settings(members), addresses);
  return new FleaseNode({ world, cluster, role: "member", nodeId: members[0]!, logger: silent, ...more });
}

const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe("a node", () => {
  let node: FleaseNode;
  afterEach(() => node.close());

  test("a single member recovers after its clock was set back, even while it has messages to itself in flight", async () => {
    const world = steppedWorld();
    let faults = 0;
    const atFault = () => {
      faults += 1;
      if (faults === 1) void leases.holder("r", { timeout: "1s" });
    };
    node = nodeOf(world, ["a"], { logger: { ...silent, error: atFault } });
    const leases = new LeaseManager(node.provider, world);
    await (await leases.acquire("r", { wait: "5s" })).release();
    await pass(20);
    world.stepMs = -3_000;
    await expect.poll(() => faults, { timeout: 3_000 }).toBe(1);
    // Until its next maintenance it sends nothing to itself.
    await pass(300);
    await using lease = await leases.acquire("r", { wait: "8s" });
    expect([faults, lease.remaining() > 0]).toEqual([1, true]);
  }, 15_000);

  test("a member with a second clock fault while its first transport still ends listens once", async () => {
    const faults: string[] = [];
    node = nodeOf(steppedWorld(), ["a"], {
      logger: { ...silent, error: (text) => void faults.push(text) },
    });
    await node.listen("127.0.0.1:0");
    const [first] = [node.transport];
    const end = first.close.bind(first);
    let hasEnded = false;
    first.close = async () => {
      await end();
      await pass(1_000);
      hasEnded = true;
    };
    for (const before of [1, 2]) {
      const { transport } = node;
      node.peer.clock.distrust();
      await expect.poll(() => node.transport !== transport, { timeout: 3_000 }).toBe(true);
      expect(faults).toHaveLength(before);
    }
    await expect.poll(() => hasEnded, { timeout: 3_000 }).toBe(true);
    await pass(50);
    expect(faults.filter((text) => text.includes("cannot listen"))).toEqual([]);
  }, 10_000);

  test("a client that continues after a clock fault still knows where it reached a member", async () => {
    node = nodeOf(realWorld(), ["a"]);
    const address = await node.listen("127.0.0.1:0");
    const world = steppedWorld();
    const client = nodeOf(world, ["a"], { role: "client", nodeId: "c" });
    const { owner } = client.peer.proposer;
    client.dialMembers(new Map([["a", address]]));
    await expect.poll(() => client.reachable()).toBe(1);
    world.stepMs = 30;
    await expect.poll(() => client.peer.proposer.owner, { timeout: 3_000 }).not.toBe(owner);
    await expect.poll(() => client.reachable(), { timeout: 3_000 }).toBe(1);
    await client.close();
  }, 15_000);

  test("reports that it is ready only when its acceptor answers", () => {
    const world = steppedWorld();
    node = nodeOf(world, ["a"]);
    const silenceMs = node.peer.acceptor!.recoveryWaitLeftMs(node.now());
    const startMs = world.clock.monotonicMs();
    while (world.clock.monotonicMs() < startMs + silenceMs + 20);
    expect(node.peer.acceptor?.recoveryWaitLeftMs(node.now())).toBe(0);
    expect(memberStatus(node, "").state).toBe("recovering");
  });

  test("answers pending requests when it closes", async () => {
    const world = realWorld();
    node = nodeOf(world, ["a", "b", "c"]);
    const leases = new LeaseManager(node.provider, world);
    const asked = leases.holder("r", { timeout: "1m" });
    await leases.close();
    expect(await Promise.race([asked, pass(500)])).toEqual({ state: "unknown" });
  });
});
