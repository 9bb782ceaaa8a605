import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LeaseholdError, clusterStatus, open } from "leasehold";
import type { Leases } from "leasehold";
import { freePorts } from "../free-ports.js";
import { leasehold, mainPath } from "../support/built.js";
import { report } from "./arena.js";

/**
 * A cluster of real processes grows from three members to five and shrinks back to three, by the command,
 * under load and with kills: holds never overlap, tokens rise, and a lease that is renewed all the while is
 * never lost.
 */

const resources = ["r0", "r1", "r2", "r3"];
let folder = "";
const processes = new Map<string, ChildProcess>();
const endpoints = new Map<string, string>();
let founding: Record<string, string> = {};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-members-"));
  const ids = ["a", "b", "c", "d", "e"];
  const ports = await freePorts(ids.length);
  for (const [index, id] of ids.entries()) endpoints.set(id, `127.0.0.1:${ports[index]}`);
  founding = Object.fromEntries(["a", "b", "c"].map((id) => [id, endpoints.get(id)!]));
});

afterAll(() => {
  for (const child of processes.values()) child.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

function configure(id: string): string {
  const config = join(folder, `${id}.config.json`);
  const common = { ttlMax: "2s", maxClockSkew: "20ms", rpcTimeout: "200ms" };
  const own = { id, listen: endpoints.get(id), viewsFile: join(folder, `${id}.views.json`) };
  const founds = id in founding ? { initialClusterState: "new" } : {};
  writeFileSync(config, JSON.stringify({ ...own, ...founds, members: founding, ...common }));
  return config;
}

function start(id: string): void {
  processes.set(id, leasehold(["peer", "--config", configure(id)]).process);
}

async function kill(id: string): Promise<void> {
  const child = processes.get(id)!;
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** Runs `leasehold member …` at one of the members. Resolves with its standard output. */
async function member(at: string, ...words: string[]): Promise<string> {
  const asked = leasehold(["member", ...words, "--endpoints", `flease://${endpoints.get(at)}`]);
  const { code, stdout, stderr } = await asked.finished;
  // On a failure, standard error says what the command waited for.
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return stdout;
}

async function allReady(at: string, count: number): Promise<void> {
  await expect
    .poll(
      async () => {
        const reports = await clusterStatus(`flease://${endpoints.get(at)}`).catch(() => []);
        return reports.filter((each) => each.reachable && each.status.state === "ready").length;
      },
      { timeout: 30_000, interval: 200 },
    )
    .toBe(count);
}

interface Tenure {
  readonly worker: number;
  readonly resource: string;
  readonly token: bigint;
  /** Taken after the granting call; `untilMs` is taken just before the last look that found the lease held. */
  readonly fromMs: number;
  untilMs: number;
}

/** Takes one resource after another, and looks at each lease as often as it can. */
async function work(worker: number, leases: Leases, tenures: Tenure[], goOn: () => boolean): Promise<void> {
  for (let turn = worker; goOn(); turn += 1) {
    const resource = resources[turn % resources.length]!;
    const lease = await leases.acquire(resource, { wait: "2s" }).catch((error: unknown) => {
      if (error instanceof LeaseholdError) return undefined;
      throw error;
    });
    if (lease === undefined) continue;
    const fromMs = performance.now();
    const tenure: Tenure = { worker, resource, token: lease.token, fromMs, untilMs: fromMs };
    tenures.push(tenure);
    const endMs = fromMs + 30 + Math.random() * 300;
    for (;;) {
      const lookMs = performance.now();
      if (lookMs > endMs || lease.remaining() <= 0) break;
      tenure.untilMs = lookMs;
      await sleep(2);
    }
    await lease.release();
  }
}

function overlaps(tenures: readonly Tenure[]): string[] {
  return resources.flatMap((resource) => {
    const own = tenures.filter((each) => each.resource === resource);
    const inOrder = own.toSorted((one, other) => one.fromMs - other.fromMs);
    return inOrder.slice(1).flatMap((next, index) => {
      const last = inOrder[index]!;
      const wrong = next.fromMs < last.untilMs || next.token <= last.token;
      return wrong
        ? [`${resource}: ${last.worker} to ${last.untilMs}, ${next.worker} from ${next.fromMs}`]
        : [];
    });
  });
}

test("from three members to five and back to three, under load and with kills", async () => {
  for (const id of ["a", "b", "c"]) start(id);
  await allReady("a", 3);
  const tenures: Tenure[] = [];
  let works = true;
  const clients = await Promise.all([0, 1, 2].map(() => open(`flease://${endpoints.get("c")}`)));
  const [keeper] = clients;
  const kept = await keeper!.acquire("kept");
  const { token } = kept;
  const workers = clients.map((leases, worker) => work(worker, leases, tenures, () => works));
  const stillKept = () => expect([kept.remaining() > 0, kept.token]).toEqual([true, token]);

  for (const [id, count] of [
    ["d", 4],
    ["e", 5],
  ] as const) {
    start(id);
    await member("b", "add", `${id}=${endpoints.get(id)}`);
    await allReady("c", count);
    stillKept();
  }
  for (const id of ["b", "d"]) {
    await kill(id);
    start(id);
    await allReady("c", 5);
    stillKept();
  }
  // One member dies in the middle of a change, and comes back during it.
  const removed = member("c", "remove", "a");
  await sleep(1_000);
  await kill("e");
  start("e");
  await removed;
  await kill("a");
  await allReady("c", 4);
  stillKept();
  await member("d", "remove", "b");
  await kill("b");
  await allReady("e", 3);
  stillKept();
  const text = await member("e", "list");
  expect(text.match(/^[a-e](?= )/gm)).toEqual(["c", "d", "e"]);
  await sleep(500);
  works = false;
  await Promise.all(workers);
  for (const leases of clients) await leases.close();
  report(`${tenures.length} tenures while the members changed`);
  expect(tenures.length).toBeGreaterThan(100);
  expect(overlaps(tenures)).toEqual([]);
});

test("a roll restarts each of three members in turn, under load; one is replaced after it", async () => {
  const pidOf = (id: string) => Number(readFileSync(join(folder, `${id}.pid`), "utf8"));
  const restart = join(folder, "restart.sh");
  // Acts as a supervisor: ends the member, and starts a new one that runs on its own.
  writeFileSync(
    restart,
    `cd ${folder}; if [ -f $1.pid ]; then kill -9 $(cat $1.pid); fi
     setsid ${process.execPath} ${mainPath} peer --config $1.config.json >$1.log 2>&1 </dev/null &
     echo $! >$1.pid`,
  );
  founding = {};
  for (const [index, port] of (await freePorts(4)).entries())
    endpoints.set("rstu"[index]!, `127.0.0.1:${port}`);
  for (const id of ["r", "s", "t"]) founding[id] = endpoints.get(id)!;
  for (const id of ["r", "s", "t", "u"]) configure(id);
  const shell = (id: string) => once(spawn("/bin/sh", [restart, id], { stdio: "ignore" }), "exit");
  try {
    for (const id of ["r", "s", "t"]) await shell(id);
    await allReady("r", 3);
    const before = ["r", "s", "t"].map(pidOf);
    const tenures: Tenure[] = [];
    let works = true;
    const clients = await Promise.all([0, 1, 2].map(() => open(`flease://${endpoints.get("t")}`)));
    const kept = await clients[0]!.acquire("kept");
    const workers = clients.map((leases, worker) => work(worker, leases, tenures, () => works));
    const printed = await member("s", "roll", "--with", `sh ${restart} {id}`);
    expect(printed.match(/^[rst] .*: restarted and ready$/gm)).toHaveLength(3);
    expect(kept.remaining()).toBeGreaterThan(0);
    for (const [index, id] of ["r", "s", "t"].entries()) expect(pidOf(id)).not.toBe(before[index]);

    // A command that restarts nothing stops the roll at its first member, which stays as it is.
    const asked = leasehold([
      "member",
      "roll",
      "--with",
      "exit 3",
      "--endpoints",
      `flease://${endpoints.get("s")}`,
    ]);
    const failed = await asked.finished;
    expect([failed.code, failed.stderr]).toEqual([69, expect.stringContaining("roll --from r")]);
    process.kill(pidOf("r"), "SIGKILL");
    await sleep(500);
    const refused = leasehold([
      "member",
      "roll",
      "--with",
      "exit 0",
      "--endpoints",
      `flease://${endpoints.get("s")}`,
    ]);
    expect(await refused.finished).toMatchObject({
      code: 69,
      stderr: expect.stringContaining("r is unreachable"),
    });

    // The member that died is replaced.
    await shell("u");
    await member("s", "replace", "r", `u=${endpoints.get("u")}`);
    await allReady("s", 3);
    expect((await member("s", "list")).match(/^[r-u](?= )/gm)).toEqual(["s", "t", "u"]);
    expect(kept.remaining()).toBeGreaterThan(0);
    works = false;
    await Promise.all(workers);
    for (const leases of clients) await leases.close();
    report(`${tenures.length} tenures while all members were restarted and one replaced`);
    expect(tenures.length).toBeGreaterThan(50);
    expect(overlaps(tenures)).toEqual([]);
  } finally {
    for (const id of ["s", "t", "u"]) process.kill(pidOf(id), "SIGKILL");
  }
});

test("all members that the cluster began with are replaced in turn, and another is added after them", async () => {
  const ids = ["h", "i", "j", "k", "l", "m", "n"];
  for (const [index, port] of (await freePorts(ids.length)).entries())
    endpoints.set(ids[index]!, `127.0.0.1:${port}`);
  founding = Object.fromEntries(["h", "i", "j"].map((id) => [id, endpoints.get(id)!]));
  for (const id of ["h", "i", "j"]) start(id);
  await allReady("h", 3);
  const leases = await open(`flease://${endpoints.get("h")}`);
  const kept = await leases.acquire("kept");
  const { token } = kept;
  for (const [before, after] of [
    ["h", "k"],
    ["i", "l"],
    ["j", "m"],
  ] as const) {
    start(after);
    await member(before, "replace", before, `${after}=${endpoints.get(after)}`);
    await kill(before);
    await allReady(after, 3);
  }
  // The new member is given the founding members, of which none is left.
  start("n");
  await member("k", "add", `n=${endpoints.get("n")}`);
  await allReady("n", 4);
  expect((await member("n", "list")).match(/^[h-n](?= )/gm)).toEqual(["k", "l", "m", "n"]);
  // The new member's vote counts: with it, three of four members are up.
  await kill("k");
  const other = await open(`flease://${endpoints.get("n")}`);
  const next = await other.acquire("next", { wait: "10s" });
  expect(next.remaining()).toBeGreaterThan(0);
  expect([kept.remaining() > 0, kept.token]).toEqual([true, token]);
  await kept.release();
  const again = await other.acquire("kept", { wait: "10s" });
  expect(again.token).toBeGreaterThan(token);
  await Promise.all([leases.close(), other.close()]);
});
