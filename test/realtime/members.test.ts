import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { open, startMember } from "leasehold";
import type { Member } from "leasehold";
import { realWorld } from "../../src/runtime/world.js";
import { openFleaseClient } from "../../src/flease/tcp/client.js";
import { changeMembers, listMembers } from "../../src/flease/tcp/change-members.js";
import { freePorts } from "../free-ports.js";

/** Members that come and go while leases are held (docs/flease.md, 3.14), with sockets and files. */

let folder = "";
let members: Member[] = [];
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "leasehold-members-"))));
afterEach(async () => {
  for (const member of members) await member.close();
  members = [];
  rmSync(folder, { recursive: true });
});

const world = realWorld();
const settings = { ttlMax: "1s", maxClockSkew: "10ms", rpcTimeout: "100ms" } as const;
const nothing = () => undefined;

async function cluster(ids: readonly string[]) {
  const ports = await freePorts(ids.length + 2);
  const addressOf = (index: number) => `127.0.0.1:${ports[index]}`;
  const founding = Object.fromEntries(ids.map((id, index) => [id, addressOf(index)]));
  const start = async (id: string, listen: string, viewsFile = join(folder, `${id}.json`)) => {
    const member = await startMember({ id, members: founding, listen, viewsFile, ...settings });
    members.push(member);
    return member;
  };
  for (const id of ids) await start(id, founding[id]!);
  for (const member of members) await member.ready({ timeout: "20s" });
  return { founding, start, spare: addressOf(ids.length), spare2: addressOf(ids.length + 1) };
}

test("one member becomes two, and a change that was refused changes nothing", async () => {
  const { founding, start, spare, spare2 } = await cluster(["a"]);
  const at = [founding["a"]!];
  const absent = changeMembers(at, {}, { add: "x", address: spare2 }, nothing, world);
  await expect(absent).rejects.toThrow(`x cannot be reached at ${spare2}: start it first`);
  const b = await start("b", spare);
  expect(await listMembers(at, {}, world)).toEqual({ number: 1, members: founding, cellSize: 1 });
  expect(b.status()).toMatchObject({ view: 1, peers: [{ id: "a" }] });
  const added = await changeMembers(at, {}, { add: "b", address: spare }, nothing, world);
  expect(added).toEqual({ number: 3, members: { ...founding, b: spare }, cellSize: 2 });
  await b.ready({ timeout: "10s" });
  const removed = await changeMembers(at, {}, { remove: "a" }, nothing, world);
  expect(removed.members).toEqual({ b: spare });
  await members[0]!.close();
  await using leases = await open(`flease://${spare}`);
  await using lease = await leases.acquire("r", { wait: "10s" });
  expect(lease.remaining()).toBeGreaterThan(0);
  // A restart goes on in the view that was kept.
  await b.close();
  const again = await start("b", spare);
  expect(again.status().view).toBe(5);
}, 60_000);

test("of two changes that are begun at two members at one moment no more than one begins, and it ends", async () => {
  const { founding } = await cluster(["a", "b", "c", "d"]);
  const addresses = Object.values(founding);
  const node = await openFleaseClient(addresses, {}, world);
  try {
    while (node.reachable() < 4) await new Promise((resolve) => setTimeout(resolve, 5));
    const change = (member: number, remove: string) =>
      node.transport.call(node.link(member)!, "change", { remove }, 5_000);
    const changes = await Promise.allSettled([change(0, "d"), change(1, "c")]);
    const begun = changes.filter(({ status }) => status === "fulfilled").length;
    expect(begun).toBeLessThan(2);
    const again = begun === 1 ? [] : [change(0, "d")];
    await Promise.all(again);
    await expect
      .poll(async () => (await listMembers([addresses[0]!], {}, world)).number, { timeout: 20_000 })
      .toBe(3);
  } finally {
    await node.close();
  }
}, 60_000);

test("a member comes and another goes, and leases are kept with their tokens by those who know one address", async () => {
  const { founding, start, spare } = await cluster(["a", "b", "c"]);
  await using leases = await open(`flease://${founding["b"]}`);
  await using lease = await leases.acquire("kept", { ttl: "1s" });
  const { token } = lease;
  await start("d", spare);
  const added = await changeMembers([founding["b"]!], {}, { add: "d", address: spare }, nothing, world);
  expect(Object.keys(added.members)).toEqual(["a", "b", "c", "d"]);
  expect([lease.remaining() > 0, lease.token]).toEqual([true, token]);
  const removed = await changeMembers([spare], {}, { remove: "a" }, nothing, world);
  expect(Object.keys(removed.members)).toEqual(["b", "c", "d"]);
  await members[0]!.close();
  expect([lease.remaining() > 0, lease.token]).toEqual([true, token]);
  const other = await leases.acquire("fresh", { wait: "5s" });
  expect(other.remaining()).toBeGreaterThan(0);
  await other.release();
  await expect(
    changeMembers([spare], {}, { add: "x", address: "127.0.0.1:1" }, nothing, world),
  ).rejects.toThrow("x cannot be reached at 127.0.0.1:1: start it first");
  await expect(changeMembers([spare], {}, { remove: "a" }, nothing, world)).rejects.toMatchObject({
    code: "INVALID_CONFIG",
  });
  // One who comes now, by one address, learns all of it.
  await using late = await open(`flease://${spare}`);
  expect((await late.holder("kept"))?.token).toBe(token);
  expect(Object.keys((await listMembers([spare], {}, world)).members)).toEqual(["b", "c", "d"]);
}, 60_000);
