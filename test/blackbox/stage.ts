import { join } from "node:path";
import type { PeerNews } from "../../packages/leasehold/src/cli/commands/peer.js";
import { Xorshift } from "../../packages/leasehold/src/common/xorshift.js";
import { FakeClock } from "../e2e/fake-clock.js";
import { Network } from "../e2e/proxy.js";
import { Actor, type Start } from "./actor.js";
import { type Build, commandOf, libraryOf, memberProgram, programBeside } from "./build.js";
import { Guarded } from "./guarded.js";
import type { HolderNews, HolderOrders } from "./holder.js";
import { Journal, nowNs } from "./journal.js";
import { type FaultKind, between, pick } from "./plan.js";
import { cluster, memberPort, offsetMsMax, rpcTimeoutMs, skewMs, ttlMs, waitMsMax } from "./settings.js";
import type { Task } from "./tasks.js";
import { type Place, Site, droppedAt, setFilter } from "./site.js";

export interface StageOptions {
  readonly run: string;
  readonly folder: string;
  readonly seed: number;
  readonly build: Build;
  /** The number of `leasehold peer` processes. */
  readonly members: number;
  /** The number of holders that are members themselves, and of holders that are clients. */
  readonly embedded: number;
  readonly clients: number;
  /** The task of each holder. */
  readonly tasks: readonly Task[];
  readonly lookEveryMs: number;
  readonly greedy: boolean;
  /** The initial offset of each process's clock, ms. Default: random within the bound. */
  readonly offsetMs?: (name: string) => number;
}

/** All processes of a run (members, holders and the guard) and the network between them. */
export class Stage {
  readonly network = new Network();
  readonly journal: Journal;
  /** Processes of `leasehold peer`, holders, and both. */
  readonly members: Actor[] = [];
  readonly holders: Actor[] = [];
  /** Names of all members, including those among the holders. */
  readonly memberNames: string[] = [];
  readonly random: Xorshift;
  /** Failures that no fault explains, such as a process that ended by itself. */
  readonly accidents: string[] = [];
  /** Processes that have raised a clock alarm. */
  readonly alarmed = new Set<string>();
  /** The number of dropped packets and treated messages, by kind of fault. */
  readonly touched = new Map<FaultKind, number>();
  takeoverMsMax = 0;
  readonly #options: StageOptions;
  readonly #site = new Site();
  readonly #guarded: Guarded;
  readonly #addresses: Record<string, string> = {};
  readonly #ready = new Set<string>();
  readonly #holding = new Map<string, Set<string>>();

  constructor(options: StageOptions) {
    this.#options = options;
    // No process of a run outlives this one, however this one ends.
    process.once("exit", () => this.destroy());
    this.random = new Xorshift(options.seed ^ 0x5eed);
    this.journal = new Journal(join(options.folder, "run.journal"), options.run, "run");
    this.#guarded = new Guarded(options.run, options.folder);
  }

  get all(): Actor[] {
    return [...this.members, ...this.holders];
  }

  /** All processes with a vote. */
  get actsAsMember(): Actor[] {
    return this.all.filter(({ name }) => this.memberNames.includes(name));
  }

  /** Starts everything. Resolves when all processes are ready. */
  async open(): Promise<void> {
    const { members, embedded, clients } = this.#options;
    await this.#guarded.start();
    const places = new Map<string, Place>();
    const names = {
      members: numbered("member", members),
      embedded: numbered("embedded", embedded),
      clients: numbered("client", clients),
    };
    for (const name of Object.values(names).flat()) places.set(name, this.#site.addPlace());
    this.memberNames.push(...names.members, ...names.embedded);
    for (const name of this.memberNames) {
      const port = await this.network.openPort(name, this.#site.address);
      port.connectTo(memberPort, places.get(name)!.address);
      this.#addresses[name] = port.address;
    }
    for (const name of names.members) {
      const place = places.get(name)!;
      this.members.push(this.#makeActor(name, place, () => this.#memberStart(name, place)));
    }
    for (const name of [...names.embedded, ...names.clients]) {
      const place = places.get(name)!;
      this.holders.push(this.#makeActor(name, place, (number) => this.#holderStart(name, place, number)));
    }
    for (const actor of this.all) actor.start();
    await this.settled(waitMsMax);
  }

  /** Resolves when every process has reported that it is ready. */
  async settled(withinMs: number): Promise<void> {
    const end = performance.now() + withinMs;
    const missing = (): string[] => this.all.flatMap(({ name }) => (this.#ready.has(name) ? [] : [name]));
    while (missing().length > 0) {
      if (performance.now() > end || missing().some((name) => hasDied(name, this.accidents)))
        throw new Error(
          `not ready within ${withinMs} ms: ${missing().join(", ")}; ${this.accidents.join("; ")}`,
        );
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** A holder that holds something now, if there is one; otherwise any holder. */
  someHolder(random: Xorshift): Actor {
    const busy = this.holders.filter(({ name }) => (this.#holding.get(name)?.size ?? 0) > 0);
    return pick(busy.length > 0 ? busy : this.holders, random);
  }

  /** Sets every clock to a random offset within the bound. */
  spreadClocks(random: Xorshift): void {
    for (const { clock } of this.all) setOffset(clock, between(-offsetMsMax, offsetMsMax, random));
  }

  /** Removes a filter, and adds the packets that it dropped to the counts. */
  lift(kind: FaultKind, place: Place): void {
    this.touch(kind, droppedAt(place));
    setFilter(place);
  }

  touch(kind: FaultKind, count: number): void {
    this.touched.set(kind, (this.touched.get(kind) ?? 0) + count);
  }

  restart(actor: Actor): void {
    this.#ready.delete(actor.name);
    this.#holding.delete(actor.name);
    actor.start();
  }

  /** Ends all faults that are still active. */
  heal(): void {
    this.network.heal();
    for (const actor of this.all) {
      setFilter(actor.place);
      if (actor.isStopped) actor.continue();
    }
  }

  /** Lets the holders release their leases, and then ends all processes. */
  async close(): Promise<void> {
    await Promise.all(this.holders.map((holder) => holder.end()));
    await Promise.all(this.members.map((member) => member.end()));
    this.destroy();
    await this.network.close();
    this.#site.remove();
  }

  /** Kills all processes. Needs no event loop. */
  destroy(): void {
    for (const actor of this.all) actor.destroy();
    this.#guarded.destroy();
  }

  #makeActor(name: string, place: Place, start: (number: number) => Start): Actor {
    const { folder, offsetMs } = this.#options;
    const clock = new FakeClock(folder, name);
    setOffset(clock, offsetMs?.(name) ?? between(-offsetMsMax, offsetMsMax, this.random));
    const { journal } = this;
    const onNews = (news: unknown): void => this.#hear(name, news as PeerNews | HolderNews);
    const onLine = (line: string, pid: number): void => this.#heard(name, line, pid);
    const onDeath = (why: string): void => void this.accidents.push(`${name}: ${why}`);
    return new Actor({ name, place, clock, journal, start, onNews, onLine, onDeath });
  }

  #hear(name: string, news: PeerNews | HolderNews): void {
    // A member is useful as soon as it listens; its recovery wait is part of the test.
    if (news.type === "ready" || news.type === "listening") this.#ready.add(name);
    if ("takeoverMsMax" in news) this.takeoverMsMax = news.takeoverMsMax;
    if (news.type !== "holding") return;
    const held = this.#holding.get(name) ?? new Set();
    this.#holding.set(name, held);
    if (news.held) held.add(news.task);
    else held.delete(news.task);
  }

  /** Members keep no journal, so their clock alarms are written to the journal here. */
  #heard(name: string, line: string, pid: number): void {
    if (!line.includes("clock fault:")) return;
    this.alarmed.add(name);
    this.journal.write({ event: "alarm", m: nowNs(), pid });
    const message = `${name}: ${line}`;
    this.journal.write({ event: "trouble", m: nowNs(), pid, code: "CLOCK_FAULT", message });
  }

  #memberStart(name: string, { address }: Place): Start {
    const all = Object.entries(this.#addresses).flatMap(([id, at]) => ["--member", `${id}=${at}`]);
    const times = ["--ttl-max", `${ttlMs}ms`, "--max-clock-skew", `${skewMs}ms`];
    const rest = ["--rpc-timeout", `${rpcTimeoutMs}ms`, "--cluster", cluster, "-o", "ndjson"];
    const listen = ["--listen", `${address}:${memberPort}`, "--insecure"];
    const words = ["peer", "--id", name, ...listen, ...all, ...times, ...rest];
    return commandOf(this.#options.build, memberProgram(this.#options.build), words);
  }

  #holderStart(name: string, { address }: Place, number: number): Start {
    const { run, folder, seed, build, tasks, lookEveryMs, greedy } = this.#options;
    const by = `${name}-${number}`;
    const times = { ttlMax: ttlMs, maxClockSkew: skewMs, rpcTimeout: rpcTimeoutMs };
    const listen = `${address}:${memberPort}`;
    const member = { id: name, members: this.#addresses, listen, cluster, insecure: true, ...times };
    const endpoints = Object.values(this.#addresses).map((at) => `flease://${at}`);
    const orders: HolderOrders = {
      library: libraryOf(build),
      run,
      name,
      by,
      journal: join(folder, `${by}.journal`),
      guard: this.#guarded.socket,
      tasks,
      seed: seed + number * 104_729 + [...name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7),
      lookEveryMs,
      greedy,
      ground: name in this.#addresses ? { member } : { endpoints },
    };
    return commandOf(build, programBeside("holder"), [JSON.stringify(orders)]);
  }
}

/** True if the process ended by itself and won't become ready. */
export function hasDied(name: string, accidents: readonly string[]): boolean {
  return accidents.some((accident) => accident.startsWith(`${name}: `));
}

/** Sets a clock's offset from true time. */
export function setOffset(clock: FakeClock, offsetMs: number): void {
  const seconds = offsetMs / 1_000;
  clock.set(`${seconds < 0 ? "" : "+"}${seconds.toFixed(3)}s`);
}

function numbered(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index + 1}`);
}
