import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Lease, Leases, Member, MemberOptions, OpenOptions } from "leasehold";
import type { CoreServerOptions, RunningCore, startCore } from "@leasehold/core";

/**
 * The context that the documentation's examples assume: leases of a cluster, and a program around them.
 * Addresses in the examples are replaced by those of members that are started here, and settings by short
 * ones.
 */
export interface Stage {
  readonly leases: Leases;
  /** A held lease. */
  readonly lease: Lease;
  /** Aborts soon, so that code that runs until then ends. */
  readonly signal: AbortSignal;
  readonly member: Member;
  readonly report: string;
  readonly storage: { write(text: string, options: { token: bigint }): Promise<void> };
  reportsToWrite(): Promise<string[]>;
  write(text: string, options: { token: bigint }): Promise<void>;
  runScheduler(signal: AbortSignal): Promise<void>;
  runDueJobs(token: bigint): Promise<void>;
}

type Library = typeof import("leasehold");

const ids = ["a", "b", "c"];
const signalMs = 100;
const settings = { ttlMax: "1s", maxClockSkew: "10ms", rpcTimeout: "150ms" } as const;

/** Members for all examples, and the library's functions connected to them. */
export class Theatre {
  readonly #library: Library;
  readonly #startCore: typeof startCore;
  readonly #opened: Leases[] = [];
  #members: Member[] = [];
  #resources = 0;

  constructor(library: Library, core: typeof startCore) {
    this.#library = library;
    this.#startCore = core;
  }

  async raise(): Promise<void> {
    const addresses = await localAddresses();
    this.#members = await Promise.all(
      ids.map((id) => this.#library.startMember({ id, members: addresses, ...settings })),
    );
    await Promise.all(this.#members.map((member) => member.ready()));
  }

  async perform(run: (stage: Stage) => Promise<unknown>): Promise<void> {
    const leases = await this.open();
    const lease = await leases.acquire(`stage/${this.#resources++}`);
    const write = async (_text: string, { token }: { token: bigint }) => {
      if (typeof token !== "bigint") throw new TypeError("a write without a token");
    };
    const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 5));
    await run({
      leases,
      lease,
      signal: AbortSignal.timeout(signalMs),
      member: this.#members[0]!,
      report: "report",
      storage: { write },
      reportsToWrite: async () => ["one", "two"],
      write,
      runScheduler: pause,
      runDueJobs: pause,
    });
    await this.#clear();
  }

  /** Replaces `open`. */
  async open(...args: (string | OpenOptions)[]): Promise<Leases> {
    const options = args.find((arg) => typeof arg === "object") ?? {};
    const given = args.filter((arg) => typeof arg === "string");
    const urls = given.some((url) => /^(?:memory:|delta\+|flease\+)/.test(url))
      ? [given[0]!.replace(/^(delta|flease)\+.*/, "$1+memory:examples")]
      : this.#urls();
    const { name } = options;
    const leases = await this.#library.open(...urls, name === undefined ? {} : { name });
    this.#opened.push(leases);
    return leases;
  }

  openFlease(urls: readonly string[]): Promise<Leases> {
    return this.open(...urls);
  }

  /** Replaces `openEtcd`. Connects to members, since no core runs here. */
  openEtcd(urls: readonly string[]): Promise<Leases> {
    return this.open(...urls);
  }

  /** Replaces `startCore`. Uses free ports and a temporary directory. */
  async startCore(options: CoreServerOptions): Promise<RunningCore> {
    const { a: peer, b: client } = await localAddresses();
    const dataDir = await mkdtemp(join(tmpdir(), "leasehold-example-core-"));
    const core = await this.#startCore({
      ...options,
      dataDir,
      listenClientUrls: `http://${client}`,
      listenPeerUrls: `http://${peer}`,
      initialAdvertisePeerUrls: `http://${peer}`,
    });
    const close = () => core.close().then(() => rm(dataDir, { recursive: true }));
    return { ...core, clientUrls: core.clientUrls, close };
  }

  /** Replaces `openGuardedCells`. Uses a store in memory. */
  openGuardedCells(): ReturnType<Library["openGuardedCells"]> {
    return this.#library.openGuardedCells("delta+memory:examples-cells");
  }

  /**
   * Replaces `startMember`. Returns a running member, so that no example waits for its recovery. Closing it
   * has no effect.
   */
  async startMember({ id, members, keyFile, tls, insecure }: MemberOptions): Promise<Member> {
    const isLocal = Object.values(members).every((address) => address.startsWith("127.0.0.1:"));
    if (!isLocal && !keyFile && !tls && !insecure)
      throw new Error("as it stands, this example is refused: members beyond loopback need credentials");
    const member = this.#members.find((member) => member.id === id);
    if (member === undefined) throw new Error(`examples have the members a, b and c, and not ${id}`);
    return { ...member, close: async () => {} };
  }

  /** Replaces `clusterStatus`. */
  clusterStatus(): ReturnType<Library["clusterStatus"]> {
    return this.#library.clusterStatus(...this.#urls());
  }

  async drop(): Promise<void> {
    await this.#clear();
    await Promise.all(this.#members.map((member) => member.close()));
  }

  #urls(): string[] {
    return this.#members.map(({ address }) => `flease://${address}`);
  }

  async #clear(): Promise<void> {
    await Promise.all(this.#opened.splice(0).map((leases) => leases.close()));
  }
}

async function localAddresses(): Promise<Record<string, string>> {
  const servers = await Promise.all(
    ids.map(async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return Object.fromEntries(ids.map((id, index) => [id, `127.0.0.1:${ports[index]}`]));
}
