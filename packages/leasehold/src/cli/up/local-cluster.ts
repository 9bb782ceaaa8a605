import { setTimeout as sleep } from "node:timers/promises";
import { clusterStatus, open } from "../../index.js";
import type { Leases } from "../../lease/types.js";
import type { PeerNews } from "../commands/peer.js";
import { CommandFailure } from "../common/failure.js";
import { LOCAL_ENDPOINTS } from "../common/settings.js";
import { Board, type Change } from "./board.js";
import type { WorkerNews, WorkerOrders } from "./news.js";
import { Processes } from "./processes.js";
import type { ScreenState } from "./screen.js";
import { few } from "../../common/lists.js";

export interface LocalPlan {
  readonly members: readonly { readonly id: string; readonly address: string }[];
  readonly workers: readonly string[];
  readonly resources: readonly string[];
  readonly cluster?: string;
  /** The port of the first member's metrics: the other members and the workers have the next ones. */
  readonly metricsPort?: number;
}

/** Settings of the local cluster: short leases, so that changes are visible, and a single clock. */
const TTL_MS = 2_500;
const MAX_CLOCK_SKEW_MS = 50;
const RPC_TIMEOUT_MS = 250;

/** The intervals of queries for leases and for the members' states. */
const LOOK_LEASES_MS = 250;
const LOOK_MEMBERS_MS = 500;
const ASK_TIMEOUT_MS = 1_000;
/** Timeout for the start of a process on a busy machine. */
const START_MS_MAX = 20_000;
/** The bounds of the time between two kills of a holder. */
const KILL_MS_MIN = 8_000;
const KILL_MS_MAX = 12_000;
/** Ports that were free when they were chosen. */
const portAdvice =
  "; another program has taken the port meanwhile: try again, or choose other ports with --port";
/** How long the processes have to exit by themselves. */
const WORKER_GRACE_MS = 1_500;
const MEMBER_GRACE_MS = 2_000;

/** Member processes, worker processes, and an observing client: everything that `up` starts. */
export class LocalCluster {
  /** Kills a holder from time to time. */
  kills: boolean;
  readonly #plan: LocalPlan;
  readonly #board: Board;
  readonly #members: Processes;
  readonly #workers: Processes;
  readonly #startedAtMs = Date.now();
  readonly #stop = new AbortController();
  readonly #listening = new Set<string>();
  /** Why a member could not start. */
  #fault: string | undefined;
  #leases: Leases | undefined;
  #loops: Promise<unknown> = Promise.resolve();

  constructor(plan: LocalPlan, kills: boolean, report: (change: Change) => void) {
    this.#plan = plan;
    this.kills = kills;
    this.#board = new Board(plan.members, report);
    this.#members = new Processes({
      message: (id, message) => this.#memberNews(id, message as PeerNews),
      exited: (id, how, last) => this.#memberExited(id, how, last),
    });
    this.#workers = new Processes({
      message: (name, message) => this.#board.observeWorker(name, message as WorkerNews, TTL_MS, Date.now()),
      exited: (name, how) =>
        this.#board.workerDied(name, how === "SIGKILL" ? "killed" : "exited", Date.now()),
    });
  }

  /** A command for another terminal: without addresses when they are the defaults. */
  static tryCommand(plan: LocalPlan): string {
    const endpoints = endpointsOf(plan);
    const known = LOCAL_ENDPOINTS.every((endpoint, index) => endpoint === (endpoints[index] ?? endpoint));
    const [first = ""] = endpoints;
    return `npx leasehold run ${known ? "" : `--endpoints ${first} `}demo/hello -- sleep 5`;
  }

  screenState(nowMs: number): ScreenState {
    return {
      nowMs,
      startedAtMs: this.#startedAtMs,
      members: [...this.#board.members.values()],
      resources: this.#plan.resources,
      leases: [...this.#board.leases.values()],
      waiting: [...this.#board.waiting.values()],
      log: this.#board.log,
      ttlMs: TTL_MS,
      workers: this.#plan.workers.length,
      kills: this.kills,
      tryCommand: LocalCluster.tryCommand(this.#plan),
    };
  }

  /** Resolves when all members listen and the workers have been started. */
  async start(): Promise<void> {
    const members = this.#plan.members.flatMap(({ id, address }) => ["--member", `${id}=${address}`]);
    const settings = ["--ttl-max", `${TTL_MS}ms`, "--max-clock-skew", `${MAX_CLOCK_SKEW_MS}ms`];
    const cluster = this.#plan.cluster === undefined ? [] : ["--cluster", this.#plan.cluster];
    for (const [index, { id }] of this.#plan.members.entries()) {
      const args = [
        "peer",
        "--id",
        id,
        ...members,
        ...settings,
        "--rpc-timeout",
        `${RPC_TIMEOUT_MS}ms`,
        ...cluster,
        ...(this.#plan.metricsPort === undefined ? [] : ["--metrics-address", this.#metricsAddress(index)]),
      ];
      this.#members.start({ name: id, module: "../main.js", args });
    }
    await this.#allListen();
    if (this.#stop.signal.aborted) return;
    const endpoints = endpointsOf(this.#plan);
    this.#leases = await open(...few(endpoints), { name: "up", timeout: START_MS_MAX });
    for (const [index, name] of this.#plan.workers.entries()) {
      const orders: WorkerOrders = {
        name,
        endpoints,
        resources: this.#plan.resources,
        ...(this.#plan.metricsPort !== undefined && {
          metricsAddress: this.#metricsAddress(this.#plan.members.length + index),
        }),
      };
      this.#workers.start({ name, module: "./worker.js", args: [JSON.stringify(orders)] });
    }
    this.#loops = Promise.all([
      this.#watchLeases(this.#leases),
      this.#watchMembers(endpoints),
      this.#killNowAndThen(),
    ]);
  }

  #metricsAddress(index: number): string {
    return `127.0.0.1:${this.#plan.metricsPort! + index}`;
  }

  async #allListen(): Promise<void> {
    const giveUpMs = performance.now() + START_MS_MAX;
    while (this.#listening.size < this.#plan.members.length && !this.#stop.signal.aborted) {
      if (this.#fault !== undefined) throw new CommandFailure("unavailable", this.#fault);
      if (performance.now() > giveUpMs)
        throw new Error(`the members did not start within ${START_MS_MAX / 1_000} s`);
      await this.#rest(20);
    }
  }

  #memberNews(id: string, news: PeerNews): void {
    if (news.type === "listening") this.#listening.add(id);
  }

  #memberExited(id: string, how: string, last: string): void {
    const why = last === "" ? how : last.replace(/^leasehold: /, "");
    if (!this.#listening.has(id)) {
      this.#fault = `member ${id} did not start: ${why}${why.includes("EADDRINUSE") ? portAdvice : ""}`;
      return;
    }
    this.#board.note("trouble", `member ${id} ended (${why}) and is restarted`, Date.now());
  }

  async #watchLeases(leases: Leases): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const hints = await leases.list("", { timeout: ASK_TIMEOUT_MS }).catch(() => undefined);
      if (hints !== undefined) this.#board.observeLeases(hints, Date.now());
      await this.#rest(LOOK_LEASES_MS);
    }
  }

  async #watchMembers(endpoints: readonly string[]): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const reports = await clusterStatus(...few(endpoints), { timeout: ASK_TIMEOUT_MS }).catch(() => []);
      this.#board.observeMembers(reports, Date.now());
      await this.#rest(LOOK_MEMBERS_MS);
    }
  }

  async #killNowAndThen(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#rest(KILL_MS_MIN + Math.random() * (KILL_MS_MAX - KILL_MS_MIN));
      const holders = this.#plan.workers.filter((worker) => this.#board.heldBy(worker).length > 0);
      const victim = holders[Math.floor(Math.random() * holders.length)];
      if (this.kills && victim !== undefined && !this.#stop.signal.aborted) this.#workers.kill(victim);
    }
  }

  async #rest(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  /** Stops the workers first, so that they can release their leases, and the members last. */
  async stop(): Promise<void> {
    this.#stop.abort();
    // A signal to the whole process group reaches the members, too.
    this.#members.expectEnds();
    await this.#workers.stop(WORKER_GRACE_MS);
    await this.#loops;
    await this.#leases?.close();
    await this.#members.stop(MEMBER_GRACE_MS);
  }

  /** Kills all processes at once. */
  killAll(): void {
    this.#workers.killAll();
    this.#members.killAll();
  }
}

export function endpointsOf(plan: LocalPlan): string[] {
  return plan.members.map(({ address }) => `flease://${address}`);
}
