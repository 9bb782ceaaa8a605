import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { transformSync } from "rolldown/utils";
import { mistakes } from "../planted/mistakes.mjs";
import { made } from "../planted/plant.mjs";
import type { Fault } from "../planted/switches.js";
import { recoveryOf } from "../support/recovery.js";
import { freePorts } from "../free-ports.js";
import { type Running, dist, eventually, leasehold } from "../support/built.js";
import { copyBuild } from "../support/copied-build.js";
import { historyLine, historyVersion } from "../../packages/leasehold/src/testing/history/journals/format.js";
import { checkHistory } from "../../packages/leasehold/src/testing/history/judge.js";
import { type HistoryReport, describeReport } from "../../packages/leasehold/src/testing/history/report.js";
import { Network } from "./proxy.js";
import { steadyClockOf } from "../support/steady-clock.js";

/** Settings of every cluster in these tests: short, so that leases expire within seconds. */
export const ttlMs = 2_000;
export const skewMs = 20;
export const rpcTimeoutMs = 150;
export const recoveryMs = recoveryOf({ ttlMaxMs: ttlMs, maxClockSkewMs: skewMs, rpcTimeoutMs });

/** A process starts in a moment; on a busy machine, in several seconds. */
const startMsMax = 20_000;
const holderPath = fileURLToPath(new URL("holder.mjs", import.meta.url));

/** Orders for a holder process. */
export interface HolderOrders {
  readonly name: string;
  readonly endpoints: readonly string[];
  readonly resources: readonly string[];
  readonly journal: string;
  /** The header of its journal. */
  readonly run: { readonly run: string; readonly clock: string };
  /** How long it holds each lease, and how long it pauses between two, ms: minimum and maximum. */
  readonly holdMs: readonly [number, number];
  readonly pauseMs: readonly [number, number];
  readonly waitMs: number;
  /** Goes on reporting a lost lease as held. */
  readonly liesAfterLoss: boolean;
  /** Writes to the guarded resource while it holds the lease: see {@link ArenaOptions.guard}. */
  readonly writes?: boolean;
}

export type HolderWishes = Partial<Omit<HolderOrders, "endpoints" | "journal" | "run">> & {
  readonly resources: readonly string[];
};

/**
 * The resource that the leases of an arena protect. It decides on a write by its token, and writes its
 * decisions to a journal of its own.
 */
export interface Guard {
  decide(resource: string, token: bigint): "accepted" | "refused";
}

interface HolderNews {
  readonly type: "started" | "acquired" | "released" | "lost" | "trouble" | "write";
  /** The number of a write. */
  readonly id?: number;
  readonly token?: string;
  readonly resource?: string;
  readonly code?: string;
  readonly message?: string;
  readonly guarantees?: { readonly takeoverMsMax: number };
}

/** A process that takes leases and keeps a journal. */
export interface Holder {
  readonly name: string;
  readonly pid: number;
  /** The resources that it holds, by its last report. */
  readonly holding: ReadonlySet<string>;
  readonly losses: number;
  readonly troubles: readonly string[];
}

class HolderProcess implements Holder {
  readonly name: string;
  readonly child: ChildProcess;
  readonly exited: Promise<void>;
  readonly holding = new Set<string>();
  readonly troubles: string[] = [];
  losses = 0;
  takeoverMsMax: number | undefined;
  readonly #onAcquired: (resource: string) => void;
  readonly #guard: Guard | undefined;

  constructor(name: string, child: ChildProcess, onAcquired: (resource: string) => void, guard?: Guard) {
    this.name = name;
    this.child = child;
    this.#onAcquired = onAcquired;
    this.#guard = guard;
    this.exited = new Promise((resolve) => child.on("close", () => resolve()));
    child.on("error", () => undefined);
    child.on("message", (message) => this.#hear(message as HolderNews));
  }

  get pid(): number {
    return this.child.pid ?? -1;
  }

  #hear({ type, resource = "", code, message, guarantees, id, token }: HolderNews): void {
    if (type === "write") this.child.send({ id, result: this.#guard?.decide(resource, BigInt(token!)) });
    if (guarantees !== undefined) this.takeoverMsMax = guarantees.takeoverMsMax;
    if (type === "acquired") {
      this.holding.add(resource);
      this.#onAcquired(resource);
    }
    if (type === "released" || type === "lost") this.holding.delete(resource);
    if (type === "lost") this.losses++;
    if (type === "trouble") this.troubles.push(`${code}: ${message}`);
  }
}

interface MemberPlace {
  readonly id: string;
  readonly listen: string;
  process: Running | undefined;
}

export interface ArenaOptions {
  readonly members?: readonly string[];
  readonly proxied?: boolean;
  /** The members' longest lease, which the holders take. Default: {@link ttlMs}. */
  readonly ttlMs?: number;
  /** One of the protocol's known mistakes, planted in all members. */
  readonly memberFault?: Fault;
  /** Makes the resource that holders with `writes` write to. */
  readonly guard?: (folder: string, run: Arena["run"]) => Guard;
  /** Additional environment of a member. */
  readonly memberEnv?: (id: string) => NodeJS.ProcessEnv;
}

/** A cluster of member processes, holders that contend for its leases, and the faults that strike them. */
export class Arena {
  readonly network = new Network();
  readonly endpoints: string[] = [];
  readonly folder = mkdtempSync(join(tmpdir(), "leasehold-e2e-"));
  /** The header of every journal. */
  readonly run = { run: randomUUID(), clock: steadyClockOf("self") };
  readonly #journal = join(this.folder, "arena.journal");
  readonly #members = new Map<string, MemberPlace>();
  readonly #addresses: Record<string, string> = {};
  readonly #holders: HolderProcess[] = [];
  #ttlMs = ttlMs;
  #guard: Guard | undefined;
  #memberFault: Fault | undefined;
  #memberEnv: (id: string) => NodeJS.ProcessEnv = () => ({});
  readonly #stopped = new Set<number>();
  /**
   * The latest holder of each resource. A stopped holder may not have reported its loss yet, so the last
   * report counts.
   */
  readonly #latest = new Map<string, Holder>();

  /**
   * Starts the members. `proxied` puts {@link Arena.network} in front of each. Resolves when all are ready.
   */
  static async start(options: ArenaOptions = {}): Promise<Arena> {
    const { members = ["a", "b", "c"], proxied = false } = options;
    const arena = new Arena();
    const header = { event: "history", version: historyVersion, ...arena.run, by: "arena" } as const;
    writeFileSync(arena.#journal, historyLine(header));
    arena.#ttlMs = options.ttlMs ?? ttlMs;
    arena.#memberFault = options.memberFault;
    arena.#guard = options.guard?.(arena.folder, arena.run);
    if (options.memberEnv !== undefined) arena.#memberEnv = options.memberEnv;
    const ports = await freePorts(members.length);
    for (const [index, id] of members.entries()) {
      const listen = `127.0.0.1:${ports[index]}`;
      let address = listen;
      if (proxied) {
        const port = await arena.network.openPort(id);
        port.connectTo(ports[index]!);
        address = port.address;
      }
      arena.#addresses[id] = address;
      arena.#members.set(id, { id, listen, process: undefined });
      arena.endpoints.push(`flease://${address}`);
    }
    for (const id of members) arena.startMember(id);
    await arena.ready(...members);
    return arena;
  }

  // Members

  startMember(id: string): void {
    const place = this.#place(id);
    const all = Object.entries(this.#addresses).flatMap(([name, address]) => [
      "--member",
      `${name}=${address}`,
    ]);
    const settings = ["--ttl-max", `${this.#ttlMs}ms`, "--max-clock-skew", `${skewMs}ms`];
    const timeout = ["--rpc-timeout", `${rpcTimeoutMs}ms`, "-o", "ndjson"];
    const words = ["peer", "--id", id, "--listen", place.listen, ...all, ...settings, ...timeout];
    const env = { ...process.env, ...this.#memberEnv(id) };
    place.process = leasehold(words, { env }, this.#buildWith(this.#memberFault));
  }

  /** Resolves when the recovery waits of these members are over. */
  async ready(...ids: string[]): Promise<void> {
    await Promise.all(
      ids.map(async (id) => {
        const { process: running } = this.#place(id);
        const isReady = (): boolean => running?.stdout().includes('"ready"') ?? false;
        await eventually(`member ${id} is ready`, isReady, startMsMax).catch((error: Error) => {
          throw new Error(`${error.message}; standard error: ${running?.stderr()}`, { cause: error });
        });
      }),
    );
  }

  /** Kills the members with SIGKILL and starts them again at once, with nothing remembered. */
  async restartMembers(...ids: string[]): Promise<void> {
    const before = ids.map((id) => this.#place(id).process!);
    for (const { pid } of before) this.kill(pid);
    // A member's port is free once the process is gone.
    await Promise.all(before.map(({ finished }) => finished));
    for (const id of ids) this.startMember(id);
  }

  memberPid(id: string): number {
    return this.#place(id).process!.pid;
  }

  /** The standard error of a member. */
  memberLog(id: string): string {
    return this.#place(id).process!.stderr();
  }

  #place(id: string): MemberPlace {
    const place = this.#members.get(id);
    if (place === undefined) throw new Error(`there is no member ${id}`);
    return place;
  }

  // Holders

  addHolder(wishes: HolderWishes): Holder {
    const name = wishes.name ?? `holder-${this.#holders.length + 1}`;
    const orders: HolderOrders = {
      holdMs: [300, 2_500],
      pauseMs: [0, 100],
      waitMs: 60_000,
      liesAfterLoss: false,
      ...wishes,
      name,
      endpoints: this.endpoints,
      journal: join(this.folder, `${name}.journal`),
      run: this.run,
    };
    const child = spawn(process.execPath, [holderPath, JSON.stringify(orders)], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    const onAcquired = (resource: string): void => {
      this.#latest.set(resource, holder);
    };
    const holder: HolderProcess = new HolderProcess(name, child, onAcquired, this.#guard);
    this.#holders.push(holder);
    return holder;
  }

  addHolders(count: number, wishes: HolderWishes): Holder[] {
    return Array.from({ length: count }, () => this.addHolder(wishes));
  }

  /** The holder that reports the resource as held. */
  async holderOf(resource: string, withinMs = startMsMax): Promise<Holder> {
    const find = (): Holder | undefined => {
      const holder = this.#latest.get(resource);
      if (holder === undefined || this.#stopped.has(holder.pid)) return undefined;
      return holder.holding.has(resource) ? holder : undefined;
    };
    return await eventually(`somebody holds ${resource}`, find, withinMs);
  }

  /** The cluster's `takeoverMsMax`, as reported to the holders. */
  async takeoverMsMax(): Promise<number> {
    const find = (): number | undefined =>
      this.#holders.find((holder) => holder.takeoverMsMax)?.takeoverMsMax;
    return await eventually("a holder has started", find, startMsMax);
  }

  /** The build, or a copy with one of the protocol's known mistakes in it. */
  #buildWith(fault: Fault | undefined): string {
    if (fault === undefined) return dist;
    const copy = join(this.folder, `build-${fault}`);
    const build = join(copy, "packages", "leasehold", "dist");
    if (existsSync(copy)) return build;
    copyBuild(copy);
    const edits = mistakes.find(({ name }) => name === fault)?.edits ?? [];
    for (const file of new Set(edits.map((edit) => edit.file))) {
      const path = join(copy, file.replace("/src/", "/dist/").replace(/\.ts$/, ".js"));
      const own = edits.filter((edit) => edit.file === file);
      // Names in the build are minified, so the mistake is made in the source.
      const source = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
      const { code } = transformSync(file, made(source, own, fault), { target: "es2023" });
      writeFileSync(path, code);
    }
    return build;
  }

  // Faults. Each is written to the journal after it happened.

  kill(pid: number): void {
    process.kill(pid, "SIGKILL");
    this.#stopped.delete(pid);
    this.#holders.find((holder) => holder.pid === pid)?.holding.clear();
    this.#note("killed", pid);
  }

  /** Kills the holder with SIGKILL. Resolves with the holder that took over. */
  async replaceHolderOf(resource: string): Promise<Holder> {
    const victim = await this.holderOf(resource);
    this.kill(victim.pid);
    return await this.holderOf(resource, 5 * ttlMs);
  }

  stop(pid: number): void {
    process.kill(pid, "SIGSTOP");
    this.#stopped.add(pid);
    this.#note("stopped", pid);
  }

  continue(pid: number): void {
    // Written before the signal, so that the process's first look comes after the entry.
    this.#note("continued", pid);
    process.kill(pid, "SIGCONT");
    this.#stopped.delete(pid);
  }

  continueAll(): void {
    for (const pid of this.#stopped) this.continue(pid);
  }

  #note(event: "killed" | "stopped" | "continued", pid: number): void {
    appendFileSync(this.#journal, historyLine({ event, m: process.hrtime.bigint(), pid }));
  }

  // The end of a run.

  /** Lets the holders finish, and judges all journals. */
  async judge(): Promise<HistoryReport> {
    for (const { child } of this.#holders) child.kill("SIGTERM");
    const finished = Promise.all(this.#holders.map((holder) => holder.exited));
    await Promise.race([finished, sleep(startMsMax, undefined, { ref: false })]);
    const troubles = this.#holders.flatMap(({ name, troubles }) => troubles.map((one) => `${name}: ${one}`));
    if (troubles.length > 0) report(`troubles:\n    ${troubles.join("\n    ")}`);
    const journals = readdirSync(this.folder).filter((name) => name.endsWith(".journal"));
    const texts = journals.map((name) => [name, readFileSync(join(this.folder, name), "utf8")]);
    return checkHistory(Object.fromEntries(texts));
  }

  /**
   * Ends all processes and deletes all files, except when `LEASEHOLD_E2E_KEEP` is set: then the files stay.
   */
  async close(): Promise<void> {
    for (const { child } of this.#holders) child.kill("SIGKILL");
    const members = [...this.#members.values()].flatMap((place) => place.process ?? []);
    for (const member of members) member.process.kill("SIGKILL");
    await Promise.all([
      ...members.map((member) => member.finished),
      ...this.#holders.map((one) => one.exited),
    ]);
    await this.network.close();
    if (process.env["LEASEHOLD_E2E_KEEP"] === undefined)
      rmSync(this.folder, { recursive: true, force: true });
    else report(`journals are kept in ${this.folder}`);
  }
}

/** Prints one line to the test's output. */
export function report(line: string): void {
  process.stdout.write(`    ${line}\n`);
}

/** Expects a clean verdict of a run in which enough happened. */
export function expectClean(history: HistoryReport): void {
  const text = describeReport(history);
  report(text);
  if (history.verdict !== "clean") throw new Error(text);
}

/** The default name under which a command takes its leases. */
export function commandName(pid: number): string {
  return `${hostname()}-${pid}`.replaceAll(/[^A-Za-z0-9_-]/g, "-");
}

export function random(min: number, max: number): number {
  return min + Math.random() * (max - min);
}
