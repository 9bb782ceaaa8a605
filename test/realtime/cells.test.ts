import { afterEach, expect, test, vi } from "vitest";
import { LeaseholdError, open, startMember } from "leasehold";
import type { Leases, Member } from "leasehold";
import { Cells } from "../../packages/leasehold/src/flease/protocol/cells.js";
import { freePorts } from "../free-ports.js";
import { startLocalCluster } from "../support/local-cluster.js";

/**
 * Five members, of which three coordinate each resource. `npm run bench -- cells` measures thirty members.
 */

const cellSize = 3;
const ids = ["m0", "m1", "m2", "m3", "m4"];
const cells = new Cells(ids, cellSize);
const resources = Array.from({ length: 60 }, (_, index) => `jobs/${String(index).padStart(2, "0")}`);
const toClose: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of toClose.splice(0).toReversed()) await each.close();
});

async function start(): Promise<{ members: Member[]; leases: Leases }> {
  const cluster = await startLocalCluster({ cellSize }, ids.length);
  toClose.push(cluster);
  const leases = await open(...cluster.urls, { name: "client" });
  toClose.push(leases);
  return { members: cluster.members, leases };
}

const standsWithout = (resource: string, lost: readonly number[]) => {
  const { members, majority } = cells.of(resource);
  return members.filter((member) => !lost.includes(member)).length >= majority;
};

/** The resources that can be acquired. */
async function reachable(leases: Leases): Promise<string[]> {
  const found = await Promise.all(
    resources.map(async (resource) => {
      try {
        const lease = await leases.acquire(resource, { wait: "400ms" });
        await lease.release();
        return [resource];
      } catch (error) {
        if (error instanceof LeaseholdError && error.code === "NO_QUORUM") return [];
        throw error;
      }
    }),
  );
  return found.flat();
}

test("each resource is on the members of its cell, and is listed and found there", async () => {
  const { members, leases } = await start();
  const held = await Promise.all(resources.map((resource) => leases.acquire(resource)));
  const expected = ids.map((_, index) => resources.filter((each) => cells.of(each).members.includes(index)));
  // A member that the client reached late learns of a lease at its renewal.
  await vi.waitFor(() => {
    expect(members.map((member) => member.status().resources)).toEqual(expected.map((each) => each.length));
  }, 3_000);
  const listed = await members[0]!.leases.list("jobs/");
  expect(listed.map((hint) => hint.resource)).toEqual(resources);
  expect(listed.filter((hint) => !hint.confirmed || hint.holder !== leases.self)).toEqual([]);
  const { token } = held[7]!;
  expect(await members[0]!.leases.holder(resources[7]!)).toMatchObject({
    state: "held",
    confirmed: true,
    token,
  });
});

test("the loss of one member costs nothing, the loss of two exactly the cells that had both", async () => {
  const { members, leases } = await start();
  await members[1]!.close();
  expect(await reachable(leases)).toEqual(resources);
  await members[3]!.close();
  const standing = resources.filter((resource) => standsWithout(resource, [1, 3]));
  expect(standing.length).toBeLessThan(resources.length);
  expect(await reachable(leases)).toEqual(standing);
});

test("members with different cell sizes refuse each other", async () => {
  const ports = await freePorts(3);
  const members = Object.fromEntries(["a", "b", "c"].map((id, index) => [id, `127.0.0.1:${ports[index]}`]));
  const errors: string[] = [];
  const logger = {
    info: () => undefined,
    warn: () => undefined,
    error: (text: string) => void errors.push(text),
  };
  const common = { members, ttlMax: "1s", maxClockSkew: "10ms", rpcTimeout: "150ms", logger };
  const one = await startMember({ id: "a", ...common, cellSize: 3 });
  const other = await startMember({ id: "b", ...common, cellSize: 1 });
  toClose.push(one, other);
  const refused = () => [one, other].map((member) => member.status().counters["rejects.sent.config"] ?? 0);
  await vi.waitFor(() => {
    expect(Math.max(...refused())).toBeGreaterThan(0);
    expect(errors.join()).toContain("configuration");
  }, 5_000);
  expect(one.status().peers.some((peer) => peer.connected)).toBe(false);
});
