import { afterEach, expect, test } from "vitest";
import { clusterStatus, open, startMember } from "leasehold";
import type { Leases, Member } from "leasehold";
import { freePorts } from "../free-ports.js";

/** Members with different settings, over real sockets. */

const ids = ["a", "b", "c"];
const settings = { ttlMax: "400ms", maxClockSkew: "10ms", rpcTimeout: "50ms" };
const otherSettings = { ...settings, ttlMax: "500ms" };

let closing: (Leases | Member)[] = [];

afterEach(async () => {
  await Promise.all(closing.map((each) => each.close()));
  closing = [];
});

async function addressesOf(names: readonly string[]): Promise<Record<string, string>> {
  const ports = await freePorts(names.length);
  return Object.fromEntries(names.map((id, index) => [id, `127.0.0.1:${ports[index]}`]));
}

async function start(
  id: string,
  members: Record<string, string>,
  options: typeof settings = settings,
): Promise<Member> {
  const member = await startMember({ id, members, ...options });
  closing.push(member);
  return member;
}

async function client(...urls: string[]): Promise<Leases> {
  const leases = await open(...urls, { timeout: "5s" });
  closing.push(leases);
  return leases;
}

const url = (address: string | undefined): string => `flease://${address}`;

test("a member with another ttlMax, even if listed first, keeps no client from the others", async () => {
  const members = await addressesOf(ids);
  const good = await Promise.all([start("a", members), start("b", members)]);
  await start("c", members, otherSettings);
  await Promise.all(good.map((member) => member.ready()));
  const urls = ["c", "a", "b"].map((id) => url(members[id]));
  for (const listed of [urls, urls.slice(0, 2), urls.toReversed()]) {
    const leases = await client(...listed);
    expect(leases.guarantees.ttlMaxMs).toBe(400);
    await (await leases.acquire("job", { wait: "5s" })).release();
  }
  const reports = await clusterStatus(...urls);
  expect(reports.map(({ id, reachable }) => [id, reachable])).toEqual([
    ["a", true],
    ["b", true],
    ["c", false],
  ]);
});

test("a client with other settings gets CONFIG_MISMATCH, which names both sides", async () => {
  const members = await addressesOf(ids);
  await start("a", members);
  await start("b", members);
  await start("c", members, otherSettings);
  await expect(open(url(members["c"]))).rejects.toMatchObject({
    code: "CONFIG_MISMATCH",
    message: expect.stringMatching(
      /^2 of the 3 members refuse this participant: .*configuration hash differs/,
    ),
  });
});

test("a client from before a change of settings gets CONFIG_MISMATCH at once, from every call", async () => {
  const members = await addressesOf(ids);
  const before = await Promise.all(ids.map((id) => start(id, members)));
  await Promise.all(before.map((member) => member.ready()));
  const leases = await client(url(members["a"]));
  await (await leases.acquire("job", { wait: "5s" })).release();
  await Promise.all(before.map((member) => member.close()));
  await Promise.all(ids.map((id) => start(id, members, otherSettings)));
  const refused = expect.objectContaining({ code: "CONFIG_MISMATCH" });
  await expect(leases.acquire("job", { wait: "20s" })).rejects.toEqual(refused);
  await expect(leases.list("")).rejects.toEqual(refused);
  await expect(leases.requestRelease("job")).rejects.toEqual(refused);
  const { members: views } = await leases.explain("job");
  expect(views.map(({ reason }) => reason)).toEqual(
    ids.map(() => expect.stringMatching(/configuration hash differs/)),
  );
});
