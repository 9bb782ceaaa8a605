import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { open } from "leasehold";
import type { Lease, Leases } from "leasehold";
import { DeleteRangeRequestSchema } from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { dist, eventually, leasehold } from "../support/built.js";
import { freePorts } from "../free-ports.js";
import { bytes } from "./support/client.js";
import { CoreCluster, type CoreProcess, type Program } from "./support/core-cluster.js";

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const code = (name: string) => expect.objectContaining({ code: name });
/** Figures that a reader of the output may want. The tested bounds are generous. */
const figures: string[] = [];
afterAll(() => {
  process.stdout.write(`${figures.join("\n")}\n`);
});

interface Line {
  readonly token?: string;
  readonly remainingMs?: number;
  readonly atMs?: number;
}

/** A process of its own that holds a lease. */
function startHolder(address: string, resource: string, ttl: string) {
  const script = fileURLToPath(new URL("support/holder.mjs", import.meta.url));
  const child = spawn(process.execPath, [script, address, resource, ttl], {
    env: { ...process.env, LEASEHOLD_DIST: dist },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: Line[] = [];
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop()!;
    lines.push(...parts.map((part) => JSON.parse(part) as Line));
  });
  return { child, lines, held: () => eventually("the holder's lease", () => lines[0]?.token) };
}

for (const program of ["etcd", "leasehold"] as const satisfies Program[]) {
  describe(`core:// on three servers of ${program}`, () => {
    let cluster: CoreCluster;
    let address: string;
    const opened: Leases[] = [];
    let names = 0;
    beforeAll(async () => {
      cluster = await CoreCluster.start(3, { program });
      address = `core://${cluster.endpoints}?ttlMax=10s`;
    });
    afterAll(async () => {
      await Promise.all(opened.map((leases) => leases.close()));
      await cluster[Symbol.asyncDispose]();
    });
    const openOne = async (at = address) => {
      const leases = await open(at);
      opened.push(leases);
      return leases;
    };
    const newName = () => `${program}/${(names += 1)}`;
    const note = (what: string, ms: number) => figures.push(`${program}: ${what}: ${ms.toFixed(1)} ms`);

    test("a release is handed over within a moment", async () => {
      const [alice, bob] = [await openOne(), await openOne()];
      const name = newName();
      const times: number[] = [];
      for (let round = 0; round < 20; round++) {
        const [from, to] = round % 2 === 0 ? [alice, bob] : [bob, alice];
        const held = await from.acquire(name, { ttl: "5s" });
        let releasedMs = 0;
        const next = to.acquire(name, { ttl: "5s" }).then((lease) => {
          times.push(performance.now() - releasedMs);
          return lease;
        });
        await sleep(30);
        releasedMs = performance.now();
        await held.release();
        await (await next).release();
      }
      times.sort((a, b) => a - b);
      note("hand-over, median of 20", times[10]!);
      expect(times[10]).toBeLessThan(500);
    });

    test("a holder that is killed is replaced when its lease has run out", async () => {
      const name = newName();
      const { child, held } = startHolder(address, name, "3s");
      const token = BigInt(await held());
      const leases = await openOne();
      const next = leases.acquire(name, { ttl: "3s", wait: "30s" });
      await sleep(1_500);
      child.kill("SIGKILL");
      const killedMs = performance.now();
      const lease = await next;
      const tookMs = performance.now() - killedMs;
      note("take-over from a holder that was killed, ttl 3 s", tookMs);
      expect(lease.token).toBeGreaterThan(token);
      // Renewed no earlier than a third of the TTL before it was killed.
      expect(tookMs).toBeGreaterThan(1_500);
      expect(tookMs).toBeLessThan(3_000 + 2_500);
      await lease.release();
    });

    test("a holder that was stopped finds its lease lost on its first look", async () => {
      const name = newName();
      const { child, lines, held } = startHolder(address, name, "2s");
      try {
        await held();
        child.kill("SIGSTOP");
        await sleep(50);
        const before = lines.length;
        const leases = await openOne();
        const lease = await leases.acquire(name, { ttl: "2s", wait: "30s" });
        child.kill("SIGCONT");
        const first = await eventually("its first look", () => lines[before]);
        expect(first.remainingMs).toBe(0);
        lease.assertHeld();
        await sleep(500);
        lease.assertHeld();
        expect(lines.slice(before).every(({ remainingMs }) => remainingMs === 0)).toBe(true);
        await lease.release();
      } finally {
        child.kill("SIGKILL");
      }
    });

    test("leases survive the death of the leader, and others can be had soon", async () => {
      const leases = await openOne();
      const lease = await leases.acquire(newName(), { ttl: "6s" });
      const leader = await cluster.leader();
      await leader.kill();
      const killedMs = performance.now();
      const other = await leases.acquire(newName(), { ttl: "6s", wait: "30s" });
      note("gap in acquisitions after the leader's death", performance.now() - killedMs);
      expect(await lastsFor(lease, 9_000)).toBe(true);
      await other.release();
      leader.start();
      await cluster.ready();
      lease.assertHeld();
      await lease.release();
    });

    test("a server that hangs is passed over", async () => {
      const leader = await cluster.leader();
      const follower = cluster.servers.find((server) => server !== leader)!;
      const all = await Promise.all(cluster.servers.map(() => openOne()));
      const held = await Promise.all(all.map((leases) => leases.acquire(newName(), { ttl: "9s" })));
      follower.signal("SIGSTOP");
      try {
        const beganMs = performance.now();
        await Promise.all(all.map(async (leases) => (await leases.acquire(newName())).release()));
        note("acquisition while the server that is asked first hangs", performance.now() - beganMs);
        const lasted = await Promise.all(held.map((lease) => lastsFor(lease, 10_000)));
        expect(lasted).toEqual([true, true, true]);
        await Promise.all(held.map((lease) => lease.release()));
      } finally {
        follower.signal("SIGCONT");
      }
      await cluster.ready();
    });

    test("a key that somebody deletes ends the tenure at once", async () => {
      const leases = await openOne();
      const name = newName();
      const lease = await leases.acquire(name, { ttl: "9s" });
      const { signal } = lease;
      expect(signal.aborted).toBe(false);
      const key = bytes(`leasehold/leases/${name}`);
      await cluster.servers[0]!.client.call("KV", "DeleteRange", create(DeleteRangeRequestSchema, { key }));
      await eventually("the loss", () => signal.aborted, 1_000);
    });

    test("the command line runs a command under a lease, and shows who holds it", async () => {
      const name = newName();
      const run = leasehold(["--endpoints", address, "run", name, "--ttl", "5s", "--", "sleep", "1"]);
      const list = async () => {
        const { stdout } = await leasehold(["--endpoints", address, "-o", "json", "ls", name]).finished;
        return (JSON.parse(stdout) as { resource: string }[]).map(({ resource }) => resource);
      };
      await sleep(600);
      expect(await list()).toEqual([name]);
      expect((await run.finished).code).toBe(0);
      expect(await list()).toEqual([]);
    });

    test("without a majority nothing is granted, and what is held runs out", async () => {
      const leases = await openOne();
      const lease = await leases.acquire(newName(), { ttl: "3s" });
      const [first, second] = cluster.servers as [CoreProcess, CoreProcess];
      await Promise.all([first.kill(), second.kill()]);
      await expect(leases.acquire(newName(), { ttl: "3s", wait: "2s" })).rejects.toThrow(code("NO_QUORUM"));
      expect(await leases.holder(lease.resource, { timeout: "1s" })).toEqual({ state: "unknown" });
      await sleep(3_000);
      expect(lease.remaining()).toBe(0);
      for (const server of [first, second]) server.start();
      await cluster.ready();
      await (await leases.acquire(newName(), { wait: "20s" })).release();
    });
  });
}

/** False if the lease is lost meanwhile. */
async function lastsFor(lease: Lease, ms: number): Promise<boolean> {
  for (let passedMs = 0; passedMs < ms && lease.remaining() > 0; passedMs += 100) await sleep(100);
  return lease.remaining() > 0;
}

test("where nobody listens, opening ends with UNREACHABLE and names the server", async () => {
  const [port] = await freePorts(1);
  const opening = open(`core://127.0.0.1:${port}`, { timeout: "500ms" });
  await expect(opening).rejects.toThrow(code("UNREACHABLE"));
  await expect(opening).rejects.toThrow(`127.0.0.1:${port}`);
});

test("an option of members is refused where a core is opened", async () => {
  const url: string = "core://127.0.0.1:1";
  await expect(open(url, { key: "00".repeat(32) })).rejects.toThrow(code("INVALID_CONFIG"));
});
