import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, expect, it } from "vitest";
import { freePorts } from "../free-ports.js";
import { mainPath } from "../support/built.js";

/** Debian's HAProxy, configured as in docs/gateway.md, before two gateways of three members. */

const here = fileURLToPath(new URL(".", import.meta.url));
const page = readFileSync(join(here, "../../docs/gateway.md"), "utf8");
const ends: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

beforeAll(() => {
  if (spawnSync("haproxy", ["-v"]).status !== 0)
    spawnSync("apt-get", ["install", "-y", "--no-install-recommends", "haproxy"]);
}, 120_000);

async function balanced() {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-balancer-"));
  ends.push(() => rmSync(folder, { recursive: true }));
  const ports = await freePorts(6);
  const [front, one, two, ...members] = ports.map((port) => `127.0.0.1:${port}`) as [string, string, string];
  const faults: string[] = [];
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
  const kill = async (child: ChildProcess): Promise<void> => {
    running.delete(child);
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  ends.push(() => Promise.all([...running].map(kill)));
  const all = members.flatMap((address, at) => ["--member", `m${at}=${address}`]);
  for (const at of members.keys())
    start(process.execPath, [
      mainPath,
      "peer",
      "--id",
      `m${at}`,
      ...all,
      "--ttl-max",
      "3s",
      "--max-clock-skew",
      "100ms",
    ]);
  const endpoints = members.map((address) => `flease://${address}`).join(",");
  const gateway = (address: string): ChildProcess =>
    start(process.execPath, [mainPath, "gateway", "--endpoints", endpoints, "--address", address]);
  const gateways = { one: gateway(one), two: gateway(two) };
  const [, text = ""] = /```haproxy\n(.*?)```/s.exec(page) ?? [];
  const config = text
    .replace(/bind \S+.*/, `bind ${front}`)
    .replace("10.0.0.1:7470", one)
    .replace("10.0.0.2:7470", two)
    // Shorter than an idle watch or a waiting call, which must outlast it.
    .replaceAll("310s", "15s");
  writeFileSync(join(folder, "haproxy.cfg"), config);
  const check = spawnSync("haproxy", ["-c", "-f", join(folder, "haproxy.cfg")], { encoding: "utf8" });
  expect([check.status, check.stderr]).toEqual([0, ""]);
  start("haproxy", ["-db", "-f", join(folder, "haproxy.cfg")]);
  const url = `http://${front}`;
  const ready = async (at: string): Promise<boolean> =>
    (await fetch(`http://${at}/readyz`).catch(() => undefined))?.ok === true;
  for (const at of [one, two, front]) await expect.poll(() => ready(at), { timeout: 60_000 }).toBe(true);
  const restart = async (name: "one" | "two", pauseMs: number): Promise<void> => {
    await kill(gateways[name]);
    await sleep(pauseMs);
    const at = name === "one" ? one : two;
    gateways[name] = gateway(at);
    await expect.poll(() => ready(at), { timeout: 60_000 }).toBe(true);
    // The balancer checks its gateways every second.
    await sleep(2_000);
  };
  return { folder, url, start, restart, faults };
}

/** A client that keeps the balancer's cookie. */
class Client {
  readonly #url: string;
  cookie = "";

  constructor(url: string) {
    this.#url = url;
  }

  async ask(method: string, path: string, body?: object): Promise<{ status: number; text: string }> {
    const headers = { cookie: this.cookie, "content-type": "application/json" };
    const request = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const answer = await fetch(`${this.#url}${path}`, request);
    const set = answer.headers.get("set-cookie");
    if (set !== null) this.cookie = set.split(";")[0]!;
    return { status: answer.status, text: await answer.text() };
  }

  get gateway(): "one" | "two" {
    return this.cookie.endsWith("=one") ? "one" : "two";
  }

  /** Follows changes of names with the prefix, until `end`. */
  async watch(prefix: string, lastId?: string) {
    const gone = new AbortController();
    const headers = { cookie: this.cookie, ...(lastId !== undefined && { "last-event-id": lastId }) };
    const path = `${this.#url}/v1/watch?prefix=${prefix}`;
    const answer = await fetch(path, { headers, signal: gone.signal });
    const seen = { text: "", isOver: false };
    const read = async (): Promise<void> => {
      for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) seen.text += part;
    };
    void read()
      .catch(() => undefined)
      .then(() => (seen.isOver = true));
    const shows = async (text: string): Promise<void> => {
      await expect.poll(() => seen.text, { timeout: 5_000 }).toContain(text);
    };
    const lastSeen = (): string => [...seen.text.matchAll(/^id: (.*)$/gm)].at(-1)![1]!;
    return { seen, shows, lastSeen, end: () => gone.abort() };
  }
}

it("watches pass the balancer without delay, outlast its timeout, and resume", async () => {
  const { url, restart } = await balanced();
  const client = new Client(url);
  expect((await client.ask("POST", "/v1/sessions", { ttl: "60s" })).status).toBe(201);
  const take = async (name: string): Promise<void> => {
    const { status, text } = await client.ask("POST", "/v1/leases", { resource: name, ttl: "60s" });
    expect([status, text]).toEqual([200, expect.any(String)]);
  };
  const watch = await client.watch("watched/");
  await watch.shows("event: reset");
  await sleep(20_000);
  await take("watched/one");
  await watch.shows('"watched/one"');
  expect(watch.seen.isOver).toBe(false);
  watch.end();
  await take("watched/two");
  const resumed = await client.watch("watched/", watch.lastSeen());
  await resumed.shows('"watched/two"');
  expect(resumed.seen.text).not.toContain("event: reset");
  await restart(client.gateway, 3_000);
  await expect.poll(() => resumed.seen.isOver, { timeout: 10_000 }).toBe(true);
  const elsewhere = await client.watch("watched/", resumed.lastSeen());
  await elsewhere.shows("event: reset");
}, 120_000);

it("a client whose gateway dies loses its session, and the resource is free after the ttl", async () => {
  const { url, restart } = await balanced();
  const client = new Client(url);
  const { text } = await client.ask("POST", "/v1/leases", { resource: "demo/lost", ttl: "3s" });
  const { lease } = (JSON.parse(text) as { leases: [{ lease: string }] }).leases[0];
  for (let look = 0; look < 10; look += 1)
    expect((await client.ask("POST", `/v1/leases/${lease}/renew`)).status).toBe(200);
  // Without a cookie, every second request reaches the gateway that does not know the session.
  const plain = async (): Promise<number> =>
    (await fetch(`${url}/v1/leases/${lease}/renew`, { method: "POST" })).status;
  const met = new Set<number>();
  // The balancer may not have found both gateways yet.
  const seen = async (): Promise<number[]> => [...met.add(await plain())].toSorted((x, y) => x - y);
  await expect.poll(seen, { timeout: 5_000 }).toEqual([200, 410]);

  const back = restart(client.gateway, 6_000);
  const statuses = new Set<number>();
  const other = new Client(url);
  const free = other.ask("POST", "/v1/leases", { resource: "demo/lost", ttl: "3s", wait: "20s" });
  await expect
    .poll(
      async () => {
        const answer = await client.ask("POST", `/v1/leases/${lease}/renew`);
        statuses.add(answer.status);
        return answer.text;
      },
      { timeout: 10_000, interval: 100 },
    )
    .toContain("SESSION_GONE");
  process.stdout.write(`the client got ${[...statuses].join(", ")}\n`);
  for (const status of statuses) expect([502, 503, 410]).toContain(status);
  const again = await free;
  // The other client may have used the same gateway.
  const taken =
    again.status === 200
      ? again
      : await other.ask("POST", "/v1/leases", { resource: "demo/lost", wait: "20s" });
  expect(taken.status).toBe(200);
  await back;
}, 120_000);

it("no two clients hold a lease at once, while gateways are killed and restarted", async () => {
  const { folder, url, start, restart, faults } = await balanced();
  const [notes, jars] = [join(folder, "notes"), join(folder, "jars")];
  for (const each of [notes, jars]) mkdirSync(each);
  for (let at = 0; at < 4; at += 1) {
    const [language, program] = at % 2 === 0 ? ["python3", "contender.py"] : ["bash", "contender.sh"];
    start(language!, [join(here, program!), url, "demo/one", join(notes, `${at}`), join(jars, `${at}`)]);
  }
  const written = () =>
    readdirSync(notes).flatMap((name) =>
      [...readFileSync(join(notes, name), "utf8").matchAll(/^(\d+) (\d+)$/gm)].map(([, at, token]) => ({
        at: BigInt(at!),
        token: BigInt(token!),
        name,
      })),
    );
  const isCurl = (name: string): boolean => Number(name) % 2 === 1;
  /** Waits until clients of both kinds have held the lease again. */
  const goOn = async (): Promise<void> => {
    const before = written();
    const count = (all: typeof before, kind: boolean) =>
      all.filter(({ name }) => isCurl(name) === kind).length;
    for (const kind of [true, false])
      await expect
        .poll(() => count(written(), kind), { timeout: 60_000, interval: 200 })
        .toBeGreaterThan(count(before, kind) + 5);
  };
  await goOn();
  for (const name of ["one", "two"] as const) {
    await restart(name, 4_000);
    await goOn();
  }
  const looks = written();
  looks.sort((left, right) => (left.at < right.at ? -1 : 1));
  const wrong = looks.filter(({ token }, index) => index > 0 && token < looks[index - 1]!.token);
  expect(wrong.slice(0, 3)).toEqual([]);
  const holders = new Map(looks.map(({ token, name }) => [token, name]));
  for (const { token, name } of looks) expect(holders.get(token)).toBe(name);
  const byCurl = looks.filter(({ name }) => isCurl(name)).length;
  process.stdout.write(
    `${byCurl} looks by curl, ${looks.length - byCurl} by Python, ${holders.size} tenures\n`,
  );
  const cookies = readdirSync(jars).map((name) => readFileSync(join(jars, name), "utf8"));
  expect(cookies.every((text) => /LEASEHOLD\t(?:one|two)/.test(text))).toBe(true);
  expect(faults.join("").match(/Traceback/g)).toBeNull();
}, 600_000);
