import { randomBytes } from "node:crypto";
import { appendFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Xorshift } from "../../../packages/leasehold/src/common/xorshift.js";
import { FakeClock } from "../../e2e/fake-clock.js";
import { Actor, type Start } from "../actor.js";
import { type Build, commandOf, programBeside } from "../build.js";
import { Journal } from "../journal.js";
import { between } from "../plan.js";
import { type Place, Site, droppedAt, setFilter } from "../site.js";
import { setOffset } from "../stage.js";
import type { ClientNews, ClientOrder, ClientOrders } from "./client.js";
import type { FileFault } from "./faults.js";
import type { NodeNews, NodeOrders } from "./node.js";
import { filesPort, leasePort, nodeNames, offsetMsMax, rpcTimeoutMs, skewMs, ttlMs } from "./settings.js";

export interface FilesStageOptions {
  readonly run: string;
  readonly folder: string;
  readonly seed: number;
  readonly build: Build;
}

type Standing = Extract<NodeNews, { type: "standing" }>;

const lookEveryMs = 20;

/**
 * Three nodes of replicated files, each in its own network namespace, and a client that can always reach them
 * all.
 */
export class FilesStage {
  readonly journal: Journal;
  readonly nodes: Actor[] = [];
  /** Failures that no fault explains, such as a process that ended by itself. */
  readonly accidents: string[] = [];
  /** For each kind of fault, how often it happened and how many packets it dropped. */
  readonly faults = new Map<FileFault, { times: number; touched?: number }>();
  /** The number of primaries' tenures that have begun. */
  resets = 0;
  readonly #options: FilesStageOptions;
  /** A random key keeps nodes of other runs out. */
  readonly #key = randomBytes(32).toString("hex");
  readonly #site = new Site();
  readonly #client: Actor;
  readonly #ready = new Set<string>();
  readonly #standings = new Map<string, Standing>();
  readonly #heard = new Set<ClientNews["type"]>();
  readonly #addresses: Record<"members" | "files", Record<string, string>> = { members: {}, files: {} };

  constructor(options: FilesStageOptions) {
    const { folder, run, seed } = options;
    this.#options = options;
    process.once("exit", () => this.destroy());
    this.journal = new Journal(join(folder, "run.journal"), run, "run");
    mkdirSync(join(folder, "disks"));
    const random = new Xorshift(seed ^ 0x5eed);
    for (const name of nodeNames) {
      const place = this.#site.addPlace();
      this.#addresses.members[name] = `${place.address}:${leasePort}`;
      this.#addresses.files[name] = `${place.address}:${filesPort}`;
      const actor = this.#makeActor(name, place, () => this.#nodeStart(name));
      setOffset(actor.clock, between(-offsetMsMax, offsetMsMax, random));
      this.nodes.push(actor);
    }
    this.#client = this.#makeActor("client", this.#site.addPlace(), () => this.#clientStart());
  }

  /** Path of the journal of the client's calls. */
  get calls(): string {
    return join(this.#options.folder, "calls.ndjson");
  }

  get disks(): Readonly<Record<string, string>> {
    return Object.fromEntries(nodeNames.map((name) => [name, this.#diskOf(name)]));
  }

  /** Starts everything. Resolves when all nodes serve. */
  async open(withinMs: number): Promise<void> {
    for (const node of this.nodes) node.start();
    await this.settled(withinMs);
    this.#client.start();
    await this.#until("the first writes", withinMs, () => this.#heard.has("prepared"));
  }

  /** Resolves when each node serves. */
  settled(withinMs: number): Promise<void> {
    return this.#until("each node serves", withinMs, () =>
      this.nodes.every(({ name }) => this.#ready.has(name)),
    );
  }

  /** Resolves when every disk counts and has all data. */
  whole(withinMs: number): Promise<void> {
    return this.#until("each disk has all", withinMs, () =>
      this.nodes.every(({ name }) => this.#standings.get(name)?.isWhole === true),
    );
  }

  /** The node that is the primary of the most files. */
  busiest(): Actor {
    const primaries = ({ name }: Actor): number => this.#standings.get(name)?.primaries ?? 0;
    return this.nodes.reduce((one, other) => (primaries(other) > primaries(one) ? other : one));
  }

  restart(node: Actor): void {
    this.#ready.delete(node.name);
    this.#standings.delete(node.name);
    node.start();
  }

  emptyDisk({ name }: Actor): void {
    rmSync(this.#diskOf(name), { recursive: true, force: true });
  }

  count(kind: FileFault, touched?: number): void {
    const before = this.faults.get(kind) ?? { times: 0 };
    if (touched === undefined) this.faults.set(kind, { ...before, times: before.times + 1 });
    else this.faults.set(kind, { ...before, touched: (before.touched ?? 0) + touched });
  }

  /** Removes a filter, and adds the packets that it dropped to the counts. */
  lift(kind: FileFault, place: Place): void {
    this.count(kind, droppedAt(place));
    setFilter(place);
  }

  /** Ends all faults that are still active. */
  heal(): void {
    for (const node of this.nodes) {
      setFilter(node.place);
      if (node.isStopped) node.continue();
    }
  }

  /** Lets the client read everything at each node, and then ends all processes. */
  async close(withinMs: number): Promise<void> {
    this.#client.tell({ type: "stop" } satisfies ClientOrder);
    await this.#until("the client has read everything", withinMs, () => this.#heard.has("finished"));
    await this.#client.end();
    await Promise.all(this.nodes.map((node) => node.end()));
    this.destroy();
    this.#site.remove();
  }

  /** Kills all processes. Needs no event loop. */
  destroy(): void {
    for (const node of this.nodes) node.destroy();
    this.#client.destroy();
  }

  async #until(what: string, withinMs: number, isSo: () => boolean): Promise<void> {
    const end = performance.now() + withinMs;
    while (!isSo()) {
      if (performance.now() > end || this.accidents.length > 0)
        throw new Error(`waited ${withinMs} ms at most until ${what}: ${this.accidents.join("; ")}`);
      await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
    }
  }

  #makeActor(name: string, place: Place, start: () => Start): Actor {
    const clock = new FakeClock(this.#options.folder, name);
    const onNews = (news: unknown): void => this.#hear(name, news as NodeNews | ClientNews);
    const onDeath = (why: string): void => void this.accidents.push(`${name}: ${why}`);
    return new Actor({
      name,
      place,
      clock,
      journal: this.journal,
      start,
      onNews,
      onLine: (line) => appendFileSync(join(this.#options.folder, `${name}.stderr`), `${line}\n`),
      onDeath,
    });
  }

  #hear(name: string, news: NodeNews | ClientNews): void {
    if (news.type === "ready") {
      this.#ready.add(name);
    } else if (news.type === "standing") {
      this.resets += Math.max(0, news.resets - (this.#standings.get(name)?.resets ?? 0));
      this.#standings.set(name, news);
    } else {
      this.#heard.add(news.type);
    }
  }

  #diskOf(name: string): string {
    return join(this.#options.folder, "disks", name);
  }

  #socketOf(name: string): string {
    return join(this.#options.folder, `${name}.socket`);
  }

  #nodeStart(name: string): Start {
    const { build } = this.#options;
    const { members, files } = this.#addresses;
    const times = { ttlMax: ttlMs, maxClockSkew: skewMs, rpcTimeout: rpcTimeoutMs };
    const orders: NodeOrders = {
      library: build.folder,
      member: { id: name, members, cluster: "blackbox-files", key: this.#key, ...times },
      node: name,
      nodes: files,
      key: this.#key,
      disk: this.#diskOf(name),
      socket: this.#socketOf(name),
    };
    return commandOf(build, programBeside("files/node"), [JSON.stringify(orders)]);
  }

  #clientStart(): Start {
    const { build, seed } = this.#options;
    const sockets = Object.fromEntries(nodeNames.map((name) => [name, this.#socketOf(name)]));
    const orders: ClientOrders = { journal: this.calls, sockets, seed };
    return commandOf(build, programBeside("files/client"), [JSON.stringify(orders)]);
  }
}
