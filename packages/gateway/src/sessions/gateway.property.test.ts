import { MemoryCluster } from "leasehold/testing";
import { Xorshift, clockRateErrorDefault } from "leasehold/common";
import { expect, it } from "vitest";
import { effort } from "../../../../test/support/effort.js";
import type { GrantAnswer, LeaseAnswer } from "./answers.js";
import { Gateway } from "./gateway.js";
import { limitsDefault } from "./limits.js";
import type { Call } from "./requests.js";

/**
 * Clients with clocks of their own, messages that are late, lost and repeated, gateways that are stopped, cut
 * off, closed and killed. In every run, no two clients may rely on one resource at once, and tokens rise.
 */

const resources = ["a", "b"];
const ttlMaxMs = 4_000;
const endMs = 60_000;
/** No client renews past this time. */
const holdEndMs = endMs + 20_000;
const limits = { ...limitsDefault, ttlMinMs: 500 };

interface Belief {
  readonly client: number;
  readonly token: bigint;
  untilMs: number;
}

/** The process of one gateway. While stopped, it handles neither messages nor timers. */
class Machine {
  readonly name: string;
  readonly gateway: Gateway;
  isDead = false;
  readonly #nowMs: () => number;
  #isStopped = false;
  #waiting: (() => void)[] = [];

  constructor(cluster: MemoryCluster, name: string, rate: number, newId: () => string) {
    this.name = name;
    const { clock, timers } = cluster.world;
    this.#nowMs = () => clock.monotonicMs() * rate;
    this.gateway = new Gateway(
      cluster.open(name),
      {
        clock: { monotonicMs: this.#nowMs, wallMs: () => clock.wallMs() },
        timers: { after: (ms, run) => timers.after(ms / rate, () => this.run(run)) },
        newId,
      },
      limits,
    );
  }

  nowMs(): number {
    return this.#nowMs();
  }

  run(work: () => void): void {
    if (this.isDead) return;
    if (this.#isStopped) this.#waiting.push(work);
    else work();
  }

  stop(): void {
    this.#isStopped = true;
  }

  goOn(): void {
    this.#isStopped = false;
    for (const work of this.#waiting.splice(0)) this.run(work);
  }
}

class Run {
  readonly random: Xorshift;
  readonly cluster: MemoryCluster;
  readonly machines: Machine[] = [];
  readonly beliefs = new Map<string, Belief[]>();
  readonly faults: string[] = [];
  readonly counts = { granted: 0, renewed: 0, expired: 0, takenOver: 0, replayed: 0, closed: 0, refused: 0 };
  readonly #tokens = new Map<string, bigint>();
  #ids = 0;

  constructor(seed: number) {
    this.random = new Xorshift(seed);
    this.cluster = new MemoryCluster({ seed, ttlMax: ttlMaxMs });
    for (let index = 0; index < 2; index += 1) this.machines.push(this.machine());
  }

  between(low: number, high: number): number {
    return low + this.random.next() * (high - low);
  }

  machine(): Machine {
    this.#ids += 1;
    const rate = 1 + this.between(-1, 1) * clockRateErrorDefault;
    return new Machine(this.cluster, `gateway-${this.#ids}`, rate, () => `s${(this.#ids += 1)}`);
  }

  now(): number {
    return this.cluster.world.clock.monotonicMs();
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.cluster.world.timers.after(ms, resolve);
    });
  }

  /** Notes that the client relies on the lease from now until `untilMs`. */
  believe(client: number, { resource, token: text }: LeaseAnswer, untilMs: number): void {
    const nowMs = this.now();
    if (untilMs <= nowMs) return;
    const token = BigInt(text);
    const all = this.beliefs.get(resource) ?? [];
    this.beliefs.set(resource, all);
    const own = all.find((each) => each.client === client && each.token === token);
    for (const other of all)
      if (other !== own && other.untilMs > nowMs)
        this.faults.push(
          `${resource}: client ${other.client} and client ${client} both rely on it at ${nowMs}`,
        );
    const highest = this.#tokens.get(resource) ?? 0n;
    if (token < highest) this.faults.push(`${resource}: token ${token} after ${highest}`);
    this.#tokens.set(resource, token > highest ? token : highest);
    if (own === undefined) all.push({ client, token, untilMs });
    else own.untilMs = Math.max(own.untilMs, untilMs);
  }

  forget(client: number, resource: string): void {
    for (const each of this.beliefs.get(resource) ?? []) if (each.client === client) each.untilMs = -Infinity;
  }

  /** Sends one request of a client. The request and its answer may be late or lost. */
  async ask<T>(
    machine: Machine,
    client: number,
    key: string | undefined,
    work: (gateway: Gateway, call: Call) => T | Promise<T>,
  ): Promise<T | undefined> {
    const delay = (): number => (this.random.next() < 0.2 ? this.between(0, 3_000) : this.between(0, 50));
    const lost = (): boolean => this.random.next() < 0.05;
    const gone = new AbortController();
    await this.sleep(delay());
    if (lost()) return undefined;
    return new Promise((resolve) => {
      machine.run(() => {
        const receivedMs = machine.nowMs();
        const call = { owner: `client-${client}`, receivedMs, signal: gone.signal, key };
        void (async () => {
          try {
            const answer = await work(machine.gateway, call);
            if (machine.isDead || lost()) return resolve(undefined);
            await this.sleep(delay());
            resolve(answer);
          } catch {
            this.counts.refused += 1;
            resolve(undefined);
          }
        })();
      });
      // The client gives up and closes its connection.
      this.cluster.world.timers.after(this.between(3_000, 12_000), () => {
        gone.abort(new Error("gone"));
        resolve(undefined);
      });
    });
  }

  async client(index: number): Promise<void> {
    /** The rate of the client's clock, relative to true time. */
    const rate = 1 + (this.random.next() < 0.5 ? -1 : 1) * clockRateErrorDefault;
    const until = (sentMs: number, { validForMs }: { validForMs: number }): number =>
      sentMs + validForMs / rate;
    while (this.now() < endMs) {
      const machine = this.machines[Math.floor(this.random.next() * this.machines.length)]!;
      const resource = resources[Math.floor(this.random.next() * resources.length)]!;
      const key = this.random.next() < 0.5 ? `key-${index}-${this.now()}` : undefined;
      const request = {
        resource,
        ttl: Math.floor(this.between(500, 6_000)),
        wait: Math.floor(this.between(0, 5_000)),
      };
      const acquire = (gateway: Gateway, call: Call) => gateway.acquire(request, call);
      let sentMs = this.now();
      let grant = (await this.ask(machine, index, key, acquire)) as GrantAnswer | undefined;
      if (grant === undefined && key !== undefined) {
        sentMs = this.now();
        grant = (await this.ask(machine, index, key, acquire)) as GrantAnswer | undefined;
        if (grant !== undefined) this.counts.replayed += 1;
      }
      if (grant !== undefined) {
        const [lease] = grant.leases;
        this.counts.granted += 1;
        this.believe(index, lease!, until(sentMs, lease!));
        await this.hold(machine, index, lease!, until);
      }
      await this.sleep(this.between(0, 500));
    }
  }

  async hold(
    machine: Machine,
    index: number,
    { lease: id, resource }: LeaseAnswer,
    until: (sentMs: number, lease: LeaseAnswer) => number,
  ): Promise<void> {
    for (let failures = 0; failures < 3;) {
      await this.sleep(this.between(100, 2_500));
      const chance = this.random.next();
      if (chance < 0.1) return;
      if (chance < 0.35) {
        this.forget(index, resource);
        await this.ask(machine, index, undefined, (gateway, call) => gateway.release(id, call));
        return;
      }
      const sentMs = this.now();
      // A look also returns a `validForMs`, but does not renew the session.
      const isLook = chance < 0.6;
      const lease = await this.ask(machine, index, undefined, (gateway, call) =>
        isLook ? gateway.lookAtLease(id, call) : gateway.renewLease(id, call),
      );
      if (lease === undefined) {
        failures += 1;
        continue;
      }
      failures = 0;
      if (lease.validForMs === 0) {
        this.counts.expired += 1;
        return;
      }
      this.counts.renewed += 1;
      this.believe(index, lease, until(sentMs, lease));
      if (this.now() > holdEndMs) return;
    }
  }

  async trouble(): Promise<void> {
    while (this.now() < endMs) {
      await this.sleep(this.between(500, 6_000));
      const index = Math.floor(this.random.next() * this.machines.length);
      const machine = this.machines[index]!;
      const chance = this.random.next();
      if (chance < 0.35) {
        this.cluster.pause(machine.name);
        machine.stop();
        await this.sleep(this.between(100, 8_000));
        this.cluster.resume(machine.name);
        machine.goOn();
      } else if (chance < 0.6) {
        this.cluster.cutOff(machine.name);
        await this.sleep(this.between(100, 8_000));
        this.cluster.reconnect(machine.name);
      } else if (chance < 0.8) {
        this.counts.closed += 1;
        void machine.gateway.close();
        this.machines[index] = this.machine();
      } else {
        machine.isDead = true;
        this.cluster.pause(machine.name);
        this.counts.takenOver += 1;
        this.machines[index] = this.machine();
      }
    }
  }
}

async function runOf(seed: number): Promise<Run> {
  const run = new Run(seed);
  const all = Promise.all([0, 1, 2, 3, 4].map((index) => run.client(index)).concat(run.trouble()));
  const state = { isOver: false };
  const over = all.then(() => (state.isOver = true));
  while (!state.isOver) await run.cluster.advance(1_000);
  await over;
  // Longer than any session and any lease. Nothing may be left of clients that have gone.
  await run.cluster.advance(20_000);
  for (const { name, gateway } of run.machines)
    if (gateway.sessions + gateway.wanted > 0)
      run.faults.push(`${name} keeps ${gateway.sessions} sessions and ${gateway.wanted} leases`);
  const late = run.cluster.open("late");
  for (const resource of resources)
    if ((await late.holder(resource)).state !== "free") run.faults.push(`${resource} is still held`);
  return run;
}

it("no two clients rely on one resource at once, whatever happens to messages, clocks and gateways", async () => {
  const total: Record<string, number> = {};
  for (let seed = 1; seed <= 40 * effort; seed += 1) {
    const { faults, counts } = await runOf(seed);
    expect(faults.slice(0, 3), `seed ${seed}`).toEqual([]);
    for (const [name, count] of Object.entries(counts)) total[name] = (total[name] ?? 0) + count;
  }
  if (process.env["LEASEHOLD_STORY"] !== undefined) process.stdout.write(`${JSON.stringify(total)}\n`);
  expect(total["granted"]).toBeGreaterThan(400 * effort);
  expect(total["renewed"]).toBeGreaterThan(300 * effort);
  expect(total["expired"]).toBeGreaterThan(3 * effort);
  expect(total["replayed"]).toBeGreaterThan(30 * effort);
});
