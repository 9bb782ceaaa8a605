import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Xorshift } from "leasehold/common";
import { afterEach, expect, it } from "vitest";
import { freePorts } from "../free-ports.js";
import { mainPath } from "../support/built.js";
import { startLocalCluster } from "../support/local-cluster.js";
import { seedOf } from "../support/seed.js";

/** Clients in Python at two gateways of three members: clients and gateways are killed and stopped again and again. */

const here = fileURLToPath(new URL(".", import.meta.url));
const runMs = 60_000;
const clientCount = 4;
const ends: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

it("no two clients hold a lease at once, by their own clocks, and tokens rise", { retry: 0 }, async () => {
  const random = new Xorshift(seedOf());
  const between = (low: number, high: number): number => low + random.next() * (high - low);
  const folder = mkdtempSync(join(tmpdir(), "leasehold-gateways-"));
  ends.push(() => rmSync(folder, { recursive: true }));
  const cluster = await startLocalCluster({ ttlMax: "3s", maxClockSkew: "100ms", rpcTimeout: "500ms" });
  ends.push(() => cluster.close());
  const ports = await freePorts(2);
  const urls = ports.map((port) => `http://127.0.0.1:${port}`).join(",");

  const running = new Set<ChildProcess>();
  const start = (command: string, words: readonly string[]): ChildProcess => {
    const child = spawn(command, words, {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, PYTHONPATH: join(here, "../../clients/python") },
    });
    child.stderr!.on("data", (text: Buffer) => faults.push(text.toString()));
    running.add(child);
    return child;
  };
  const faults: string[] = [];
  const kill = async (child: ChildProcess): Promise<void> => {
    running.delete(child);
    if (child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  ends.push(() => Promise.all([...running].map(kill)));

  const gateway = (at: number): ChildProcess =>
    start(process.execPath, [
      mainPath,
      "gateway",
      "--endpoints",
      cluster.urls.join(","),
      "--address",
      `127.0.0.1:${ports[at]}`,
    ]);
  let clients = 0;
  /** By the name of its journal. */
  const processOf = new Map<string, ChildProcess>();
  const client = (): ChildProcess => {
    clients += 1;
    const name = `${clients}`;
    const child = start("python3", [join(here, "contender.py"), urls, "demo/one", join(folder, name)]);
    processOf.set(name, child);
    return child;
  };
  const gateways = [gateway(0), gateway(1)];
  const all = Array.from({ length: clientCount }, client);
  const endMs = performance.now() + runMs;
  let killed = 0;
  while (performance.now() < endMs) {
    await sleep(between(100, 1_000));
    const isGateway = random.next() < 0.5;
    const list = isGateway ? gateways : all;
    // Most often the holder: it is the one that has written last.
    const holder = all.indexOf(processOf.get(lastWriter(folder))!);
    const at = !isGateway && holder >= 0 ? holder : Math.floor(random.next() * list.length);
    // Longer than leases last, now and then.
    const restMs = between(0, 7_000);
    if (random.next() < 0.5) {
      list[at]!.kill("SIGSTOP");
      await sleep(restMs);
      list[at]!.kill("SIGCONT");
    } else {
      killed += 1;
      await kill(list[at]!);
      if (isGateway) await sleep(restMs);
      list[at] = isGateway ? gateway(at) : client();
    }
  }
  await Promise.all([...running].map(kill));

  const notes = readdirSync(folder).flatMap((name) =>
    readFileSync(join(folder, name), "utf8")
      .split("\n")
      .flatMap((line) => {
        const [, at, token] = /^(\d+) (\d+)$/.exec(line) ?? [];
        return at === undefined || token === undefined
          ? []
          : [{ at: BigInt(at), token: BigInt(token), name }];
      }),
  );
  notes.sort((left, right) => (left.at < right.at ? -1 : 1));
  const wrong = notes.filter(({ token }, index) => index > 0 && token < notes[index - 1]!.token);
  expect(wrong.slice(0, 3)).toEqual([]);
  const holders = new Map(notes.map(({ token, name }) => [token, name]));
  for (const { token, name } of notes) expect(holders.get(token)).toBe(name);
  process.stdout.write(
    `${notes.length} looks at ${holders.size} tenures of ${clients} clients, ${killed} kills\n`,
  );
  expect(holders.size).toBeGreaterThan(5);
  expect(faults.filter((text) => !text.includes("KeyboardInterrupt"))).toEqual([]);
});

function lastWriter(folder: string): string {
  const changedMs = (name: string) => statSync(join(folder, name)).mtimeMs;
  const [last = ""] = readdirSync(folder).toSorted((left, right) => changedMs(right) - changedMs(left));
  return last;
}
