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
import { seedOf } from "../support/seed.js";

/**
 * Python clients and shells with curl, at two gateways of three members. Clients, gateways and members are
 * killed and stopped repeatedly.
 */

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
  const ports = await freePorts(5);
  const addresses = ports.map((port) => `127.0.0.1:${port}`);
  const endpoints = addresses.slice(2).map((address) => `flease://${address}`);
  const urls = [`http://${addresses[0]}`, `http://${addresses[1]}`].join(",");

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

  const command = (...words: string[]) => start(process.execPath, [mainPath, ...words]);
  const gateway = (at: number) =>
    command("gateway", "--endpoints", endpoints.join(","), "--address", addresses[at]!);
  const settings = ["--ttl-max", "3s", "--max-clock-skew", "100ms", "--rpc-timeout", "500ms"];
  const everyMember = addresses.slice(2).flatMap((address, at) => ["--member", `m${at}=${address}`]);
  const member = (at: number) => command("peer", "--id", `m${at}`, ...everyMember, ...settings);
  let clients = 0;
  /** Processes by the name of their journal. */
  const processOf = new Map<string, ChildProcess>();
  const client = (): ChildProcess => {
    clients += 1;
    const name = `${clients}`;
    const [language, program] = clients % 2 === 0 ? ["python3", "contender.py"] : ["bash", "contender.sh"];
    const child = start(language!, [join(here, program!), urls, "demo/one", join(folder, name)]);
    processOf.set(name, child);
    return child;
  };
  const members = [member(0), member(1), member(2)];
  const gateways = [gateway(0), gateway(1)];
  const all = Array.from({ length: clientCount }, client);
  const endMs = performance.now() + runMs;
  let killed = 0;
  while (performance.now() < endMs) {
    await sleep(between(100, 1_000));
    const kind = random.next();
    const list = kind < 0.5 ? all : kind < 0.75 ? gateways : members;
    const again = kind < 0.5 ? client : kind < 0.75 ? gateway : member;
    // Of the clients, usually the holder: it has written last.
    const holder = list === all ? all.indexOf(processOf.get(lastWriter(folder))!) : -1;
    const at = holder >= 0 ? holder : Math.floor(random.next() * list.length);
    // Sometimes longer than leases last. While one member is down, the others are a majority.
    const restMs = between(0, 7_000);
    if (random.next() < 0.5) {
      list[at]!.kill("SIGSTOP");
      await sleep(restMs);
      list[at]!.kill("SIGCONT");
    } else {
      killed += 1;
      await kill(list[at]!);
      if (list !== all) await sleep(restMs);
      list[at] = again(at);
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
  const looks = (isCurl: boolean) => notes.filter(({ name }) => Number(name) % 2 === (isCurl ? 1 : 0)).length;
  expect([looks(true) > 50, looks(false) > 50]).toEqual([true, true]);
  const holders = new Map(notes.map(({ token, name }) => [token, name]));
  for (const { token, name } of notes) expect(holders.get(token)).toBe(name);
  process.stdout.write(
    `${looks(true)} looks by curl and ${looks(false)} by Python, at ${holders.size} tenures of ${clients} clients, ${killed} kills\n`,
  );
  expect(holders.size).toBeGreaterThan(5);
  // A gateway logs a warning when it loses a member.
  expect(faults.join("").match(/^(?!\S+Z warn .*member-lost:).+$/gm) ?? []).toEqual([]);
});

function lastWriter(folder: string): string {
  const changedMs = (name: string) => statSync(join(folder, name)).mtimeMs;
  const [last = ""] = readdirSync(folder).toSorted((left, right) => changedMs(right) - changedMs(left));
  return last;
}
