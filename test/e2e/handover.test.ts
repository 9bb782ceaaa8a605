import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { open } from "leasehold";
import type { Leases } from "leasehold";
import { freePorts } from "../free-ports.js";
import { type Running, eventually, leasehold } from "../support/built.js";

/**
 * `leasehold handover NAME TO` with processes that hold and wait: three members, and one `leasehold hold` for
 * each holder.
 */

let endpoints = "";
const members: Running[] = [];
const holders: Holder[] = [];

beforeAll(async () => {
  const ids = ["a", "b", "c"];
  const ports = await freePorts(ids.length);
  const addresses = ids.map((id, index) => [id, `127.0.0.1:${ports[index]}`] as const);
  const list = addresses.flatMap(([id, address]) => ["--member", `${id}=${address}`]);
  // The leases outlast a test, so that a new holder can only have got its lease by the handover.
  const times = ["--ttl-max", "8s", "--max-clock-skew", "20ms", "--rpc-timeout", "300ms"];
  for (const id of ids) members.push(leasehold(["peer", "--id", id, ...list, ...times]));
  endpoints = addresses.map(([, address]) => `flease://${address}`).join();
  for (const member of members)
    await eventually("a member that is ready", () => member.stdout().includes("is ready"), 60_000);
}, 90_000);
afterEach(() => {
  for (const { running } of holders.splice(0)) running.process.kill("SIGKILL");
});
afterAll(() => {
  for (const member of members) member.process.kill("SIGKILL");
});

/** A process of `leasehold hold`, by its label. */
class Holder {
  readonly running: Running;

  constructor(resource: string, label: string) {
    const words = ["hold", resource, "--label", label, "--wait", "1m", "-o", "ndjson"];
    this.running = leasehold([...words, "--endpoints", endpoints]);
    holders.push(this);
  }

  /** The token of its lease, if it holds one. */
  get token(): bigint | undefined {
    const lines = this.running.stdout().split("\n").filter(Boolean);
    const held = lines.map((line) => JSON.parse(line) as { type: string; token?: string });
    const token = held.find(({ type }) => type === "held")?.token;
    return token === undefined ? undefined : BigInt(token);
  }

  held(): Promise<bigint> {
    return eventually("the lease", () => this.token, 30_000);
  }
}

/** Starts a waiter. Resolves when the members know of `count` waiters. */
async function waiter(leases: Leases, resource: string, label: string, count: number): Promise<Holder> {
  const holder = new Holder(resource, label);
  const known = async () => (await leases.explain(resource)).waiting;
  await expect.poll(known, { timeout: 30_000, interval: 100 }).toBe(count);
  return holder;
}

async function handover(...words: string[]) {
  const { code, stdout, stderr } = await leasehold(["handover", ...words, "--endpoints", endpoints]).finished;
  return { code, stdout, stderr };
}

test("the named waiter gets the lease before one that has waited for longer, and leases of others stay", async () => {
  await using leases = await open(...endpoints.split(","));
  const first = new Holder("scheduler", "first");
  const elsewhere = new Holder("elsewhere", "first");
  const [token, kept] = [await first.held(), await elsewhere.held()];
  const early = await waiter(leases, "scheduler", "early", 1);
  const named = await waiter(leases, "scheduler", "named", 2);
  expect(await handover("scheduler", "named")).toMatchObject({ code: 0, stderr: "" });
  const next = await named.held();
  expect(next > token).toBe(true);
  expect((await first.running.finished).code).toBe(0);
  expect(early.token).toBeUndefined();
  expect(await leases.explain("elsewhere")).toMatchObject({ state: "held", token: kept });
  named.running.process.kill("SIGINT");
  expect((await early.held()) > next).toBe(true);
});

test("a name that no waiter has is refused, and the holder goes on", async () => {
  await using leases = await open(...endpoints.split(","));
  const first = new Holder("reports", "first");
  const token = await first.held();
  const refused = {
    code: 75,
    stdout: "",
    stderr: expect.stringMatching(/"ghost" does not wait for reports/),
  };
  // First without any waiter, then with another waiter.
  expect(await handover("reports", "ghost")).toMatchObject(refused);
  const other = await waiter(leases, "reports", "other", 1);
  expect(await handover("reports", "ghost")).toMatchObject(refused);
  // The holder itself doesn't wait, and a waiter for another resource doesn't count.
  expect((await handover("reports", "first")).code).toBe(75);
  expect((await handover("nothing", "other")).code).toBe(75);
  expect(await leases.explain("reports")).toMatchObject({ state: "held", token });
  expect([other.token, first.running.process.exitCode]).toEqual([undefined, null]);
});
