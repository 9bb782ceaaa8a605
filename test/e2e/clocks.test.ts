import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { clusterStatus } from "leasehold";
import type { MemberStatus } from "leasehold";
import { dist } from "../support/built.js";
import { Arena, report } from "./arena.js";
import { FakeClock, isFaketimeInstalled } from "./fake-clock.js";

/**
 * Wall clocks of real processes that jump or drift: each process reaches the state that docs/operations.md
 * describes, and recovers.
 */

interface News {
  readonly type: "started" | "acquired" | "failed" | "lost";
  readonly code?: string;
  readonly reason?: string;
  readonly message?: string;
}

const clockedPath = fileURLToPath(new URL("clocked.mjs", import.meta.url));

class Client {
  readonly news: News[] = [];
  readonly #child: ChildProcess;

  constructor(name: string, urls: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const orders = { library: pathToFileURL(join(dist, "index.js")).href, urls, name };
    this.#child = fork(clockedPath, [JSON.stringify(orders)], { env: { ...process.env, ...env } });
    this.#child.on("message", (news) => this.news.push(news as News));
  }

  /** The next news of this kind after the first `from` entries. */
  async next(type: News["type"], from: number, withinMs = 15_000, code?: string): Promise<News> {
    const end = performance.now() + withinMs;
    for (;;) {
      const found = this.news
        .slice(from)
        .find((news) => news.type === type && (code ?? news.code) === news.code);
      if (found !== undefined) return found;
      if (performance.now() > end)
        throw new Error(`no news of kind ${type} within ${withinMs} ms: ${JSON.stringify(this.news)}`);
      await sleep(20);
    }
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}

let folder: string;
let clock: FakeClock;
let arena: Arena | undefined;
const clients: Client[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-clocks-"));
  clock = new FakeClock(folder, "faked");
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.kill();
  await arena?.close();
  arena = undefined;
  rmSync(folder, { recursive: true, force: true });
});

function client(name: string, env?: NodeJS.ProcessEnv): Client {
  const added = new Client(name, arena!.endpoints, env);
  clients.push(added);
  return added;
}

async function stateOf(id: string): Promise<MemberStatus | undefined> {
  const reports = await clusterStatus(...arena!.endpoints, { timeout: "2s" });
  const found = reports.find((one) => one.id === id);
  return found?.reachable === true ? found.status : undefined;
}

async function reaches(id: string, state: MemberStatus["state"], withinMs = 15_000): Promise<MemberStatus> {
  const end = performance.now() + withinMs;
  for (;;) {
    const status = await stateOf(id);
    if (status?.state === state) return status;
    if (performance.now() > end)
      throw new Error(`${id} is ${status?.state}, not ${state}: ${arena!.memberLog(id)}`);
    await sleep(50);
  }
}

const jumps = [
  ["forward by seconds", "+3s"],
  ["back by seconds", "-3s"],
  ["forward by hours", "+5h"],
  ["back by hours", "-5h"],
  ["away, a tenth too fast", "+0 x1.1"],
] as const;

describe.runIf(isFaketimeInstalled)("a member's wall clock moves", () => {
  test.each(jumps)(
    "%s: it has no vote and reports why, the others go on, and it comes back",
    async (_, change) => {
      arena = await Arena.start({ memberEnv: (id) => (id === "c" ? clock.env : {}) });
      const bystander = client("bystander");
      await bystander.next("acquired", 0);
      clock.set(change);
      const status = await reaches("c", "clock-fault");
      expect(status.notice).toMatch(/contradicts this clock|moved \d+ ms apart/);
      expect(arena.memberLog("c")).toMatch(/clock fault: .*; every lease of this process is lost/);
      await sleep(1_000);
      expect((await stateOf("a"))!.state).toBe("ready");
      expect((await stateOf("b"))!.state).toBe("ready");
      clock.set("+0 x1");
      await reaches("c", "ready", 20_000);
      expect(bystander.news.map((news) => news.type)).toEqual(["started", "acquired"]);
      report(`c said: ${arena.memberLog("c").trim().split("\n").join("\n      ")}`);
    },
  );
});

describe.runIf(isFaketimeInstalled)("a client's wall clock moves", () => {
  test.each(jumps)(
    "%s: its lease is lost, attempts fail with the reason, others go on, and it comes back",
    async (_, change) => {
      arena = await Arena.start();
      const bystander = client("bystander");
      const victim = client("victim", clock.env);
      await Promise.all([bystander.next("acquired", 0), victim.next("acquired", 0)]);
      const before = victim.news.length;
      clock.set(change);
      const lost = await victim.next("lost", before, 10_000);
      expect(lost.code).toBe("LEASE_LOST");
      // A step shows in the first look. With a clock that runs away, the lease may expire first.
      expect(["expired", "clock-fault"]).toContain(lost.reason);
      const failed = await victim.next("failed", before, 10_000, "CLOCK_SKEW");
      expect(failed.message).toMatch(
        /contradicts this clock|moved \d+ ms apart|refuse this participant's times/,
      );
      clock.set("+0 x1");
      const wrong = victim.news.length;
      await victim.next("acquired", wrong, 20_000);
      expect(bystander.news.map((news) => news.type)).toEqual(["started", "acquired"]);
      report(`${change}: ${JSON.stringify(lost)} then ${JSON.stringify(failed)}`);
    },
  );
});
