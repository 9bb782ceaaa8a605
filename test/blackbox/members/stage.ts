import { rmSync } from "node:fs";
import { join } from "node:path";
import type { PeerNews } from "../../../packages/leasehold/src/cli/commands/peer.js";
import { Xorshift } from "../../../packages/leasehold/src/common/xorshift.js";
import { FakeClock } from "../../e2e/fake-clock.js";
import { Actor, type Start } from "../actor.js";
import { type Build, commandOf, libraryOf, memberProgram, programBeside } from "../build.js";
import { Guarded } from "../guarded.js";
import type { HolderNews, HolderOrders } from "../holder.js";
import { Journal } from "../journal.js";
import { between, pick } from "../plan.js";
import { alone, memberPort, offsetMsMax, rpcTimeoutMs, skewMs, ttlMs } from "../settings.js";
import { type Place, Site, setFilter } from "../site.js";
import { hasDied, setOffset } from "../stage.js";

export interface MembersStageOptions {
  readonly run: string;
  readonly folder: string;
  readonly seed: number;
  readonly build: Build;
  readonly lookEveryMs: number;
}

const cluster = "blackbox-members";
const clients = 4;
const founders = 3;

/** Members that join and leave, clients that take leases all the while, and the guarded resource. */
export class MembersStage {
  readonly journal: Journal;
  /** Members by id. No id is used twice. */
  readonly members = new Map<string, Actor>();
  readonly holders: Actor[] = [];
  readonly accidents: string[] = [];
  readonly #options: MembersStageOptions;
  readonly #site = new Site();
  readonly #guarded: Guarded;
  readonly #random: Xorshift;
  readonly #addresses = new Map<string, string>();
  readonly #ready = new Set<string>();
  #founding: readonly string[] = [];
  #born = 0;

  constructor(options: MembersStageOptions) {
    const { run, folder, seed } = options;
    this.#options = options;
    process.once("exit", () => this.destroy());
    this.#random = new Xorshift(seed ^ 0x5eed);
    this.journal = new Journal(join(folder, "run.journal"), run, "run");
    this.#guarded = new Guarded(run, folder);
  }

  /** The addresses at which the given members take requests. Default: all running members. */
  endpointsOf(ids: Iterable<string> = this.members.keys()): string[] {
    return [...ids].map((id) => `flease://${this.#addresses.get(id)}`);
  }

  async open(withinMs: number): Promise<void> {
    await this.#guarded.start();
    for (let count = 0; count < founders; count += 1) this.newMember();
    this.#founding = [...this.members.keys()].map((id) => `${id}=${this.#addresses.get(id)}`);
    for (const member of this.members.values()) member.start();
    for (let number = 1; number <= clients; number += 1) {
      const name = `client-${number}`;
      const start = (count: number): Start => this.#holderStart(name, count);
      this.holders.push(this.#makeActor(name, this.#site.addPlace(), start));
    }
    for (const holder of this.holders) holder.start();
    await this.settled(withinMs);
  }

  /** Makes a member that isn't part of the cluster yet; the caller starts it. */
  newMember(): { readonly id: string; readonly address: string; readonly actor: Actor } {
    const id = `m${String((this.#born += 1)).padStart(2, "0")}`;
    const place = this.#site.addPlace();
    const address = `${place.address}:${memberPort}`;
    this.#addresses.set(id, address);
    const actor = this.#makeActor(id, place, () => this.#memberStart(id));
    this.members.set(id, actor);
    return { id, address, actor };
  }

  /** Stops a process that is no longer a member, and deletes its file. */
  async retire(id: string): Promise<void> {
    const actor = this.members.get(id);
    if (actor === undefined) return;
    this.members.delete(id);
    await actor.kill();
    rmSync(this.#viewsOf(id), { force: true });
  }

  /** Resolves when every process has reported that it is ready. */
  async settled(withinMs: number): Promise<void> {
    const end = performance.now() + withinMs;
    const missing = (): string[] => this.#all().flatMap(({ name }) => (this.#ready.has(name) ? [] : [name]));
    while (missing().length > 0) {
      if (performance.now() > end || missing().some((name) => hasDied(name, this.accidents)))
        throw new Error(`not ready: ${missing().join(", ")}; ${this.accidents.join("; ")}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  listens(id: string): boolean {
    return this.#ready.has(id);
  }

  someMember(random: Xorshift): Actor {
    return pick([...this.members.values()], random);
  }

  restart(actor: Actor): void {
    // The member was retired meanwhile.
    if (actor.name.startsWith("m") && !this.members.has(actor.name)) return;
    this.#ready.delete(actor.name);
    actor.start();
  }

  heal(): void {
    for (const actor of this.#all()) {
      setFilter(actor.place);
      if (actor.isStopped) actor.continue();
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.holders.map((holder) => holder.end()));
    this.destroy();
    this.#site.remove();
  }

  /** Kills all processes. Needs no event loop. */
  destroy(): void {
    for (const actor of this.#all()) actor.destroy();
    this.#guarded.destroy();
  }

  #all(): Actor[] {
    return [...this.members.values(), ...this.holders];
  }

  #makeActor(name: string, place: Place, start: (number: number) => Start): Actor {
    const clock = new FakeClock(this.#options.folder, name);
    setOffset(clock, between(-offsetMsMax, offsetMsMax, this.#random));
    const onNews = (news: unknown): void => {
      const { type } = news as PeerNews | HolderNews;
      if (type === "ready" || type === "listening") this.#ready.add(name);
    };
    const onDeath = (why: string): void => void this.accidents.push(`${name}: ${why}`);
    const onLine = (): void => undefined;
    return new Actor({ name, place, clock, journal: this.journal, start, onNews, onLine, onDeath });
  }

  #viewsOf(id: string): string {
    return join(this.#options.folder, `${id}.views.json`);
  }

  #memberStart(id: string): Start {
    const { build } = this.#options;
    const times = ["--ttl-max", `${ttlMs}ms`, "--max-clock-skew", `${skewMs}ms`];
    const rest = ["--rpc-timeout", `${rpcTimeoutMs}ms`, "--cluster", cluster, "-o", "ndjson"];
    const own = ["--id", id, "--listen", this.#addresses.get(id)!, "--views-file", this.#viewsOf(id)];
    const list = this.#founding.flatMap((member) => ["--member", member]);
    const founds = this.#founding.some((member) => member.startsWith(`${id}=`));
    const state = founds ? ["--initial-cluster-state", "new"] : [];
    const words = ["peer", ...own, ...state, "--insecure", ...list, ...times, ...rest];
    return commandOf(build, memberProgram(build), words);
  }

  #holderStart(name: string, number: number): Start {
    const { run, folder, seed, build, lookEveryMs } = this.#options;
    const by = `${name}-${number}`;
    const orders: HolderOrders = {
      library: libraryOf(build),
      run,
      name,
      by,
      journal: join(folder, `${by}.journal`),
      guard: this.#guarded.socket,
      tasks: alone,
      seed: seed + number * 104_729 + [...name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7),
      lookEveryMs,
      greedy: false,
      ground: { endpoints: this.endpointsOf() },
    };
    return commandOf(build, programBeside("holder"), [JSON.stringify(orders)]);
  }
}
