import { setTimeout as sleep } from "node:timers/promises";
import { parseDuration } from "../../lease/duration.js";
import { exitCode } from "../common/exit-codes.js";
import { usageError } from "../common/failure.js";
import { paintFor } from "../output/ansi.js";
import { printable } from "../output/cells.js";
import { toJson } from "../output/json.js";
import { printLine, printLines } from "../output/print.js";
import { listenToSignals } from "../common/signals.js";
import { type SharedOptions, settingsOf } from "../common/settings.js";
import type { Change } from "./board.js";
import { LocalCluster, type LocalPlan, endpointsOf } from "./local-cluster.js";
import { LocalConsole } from "./local-console.js";
import { freePorts } from "./ports.js";
import { clockTime, renderScreen } from "./screen.js";
import { Terminal, isQuit } from "./terminal.js";

export interface UpOptions extends SharedOptions {
  readonly members: number;
  readonly workers: number;
  readonly resources: number;
  readonly kills: boolean;
  readonly port: number;
  readonly metricsPort?: number;
  readonly duration?: string;
}

/** Ten frames a second: a draining bar looks smooth at little cost. */
const FRAME_MS = 100;
const RESOURCE_NAMES = [
  "reports",
  "invoices",
  "backup",
  "search-index",
  "mailing",
  "thumbnails",
  "billing",
  "import",
];
const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** `leasehold up`: a local cluster with workers that contend for its leases, until it is stopped. */
export async function up(options: UpOptions): Promise<number> {
  const { output } = settingsOf(options);
  if (output === "json") throw usageError("up goes on and on: -o is table or ndjson here");
  const durationMs =
    options.duration === undefined ? undefined : parseDuration(options.duration, "--duration");
  const stop = new StopRequest(durationMs);
  const plan = await planOf(options);
  const onScreen = output === "table" && process.stdout.isTTY === true;
  const show = output === "ndjson" ? showObject : showLine;
  const cluster = new LocalCluster(plan, options.kills, onScreen ? () => undefined : show);
  const page = await LocalConsole.find();
  const view = onScreen ? new ScreenView(cluster, stop, page?.url) : undefined;
  // The last resort: whatever ends this process, the other processes are ended and the terminal is restored.
  process.on("exit", () => {
    view?.close();
    cluster.killAll();
  });
  try {
    if (!onScreen && output === "table") printLines(introduction(plan, page?.url));
    view?.open();
    const started = cluster.start().then(() => {
      void page?.serve(endpointsOf(plan), plan.cluster);
      return stop.requested;
    });
    await Promise.race([started, stop.requested]);
    if (view !== undefined) view.notice = "stopping…";
    stop.onSecond(() => cluster.killAll());
    await page?.close();
    await cluster.stop();
  } finally {
    view?.close();
  }
  if (output === "table") printLine("everything that was started has been stopped");
  return exitCode("ok");
}

async function planOf(options: UpOptions): Promise<LocalPlan> {
  const ports = await freePorts(options.port, options.members);
  const addresses = ports.map((port) => `127.0.0.1:${port}`);
  return {
    members: addresses.map((address, index) => ({ id: memberId(index), address })),
    workers: Array.from({ length: options.workers }, (_, index) => `worker-${index + 1}`),
    resources: Array.from(
      { length: options.resources },
      (_, index) => `demo/${RESOURCE_NAMES[index] ?? `resource-${index + 1}`}`,
    ),
    ...(options.cluster !== undefined && { cluster: options.cluster }),
    ...(options.metricsPort !== undefined && { metricsPort: options.metricsPort }),
  };
}

/** a, b, c, …, z, m27, … */
function memberId(index: number): string {
  return index < 26 ? String.fromCharCode(97 + index) : `m${index + 1}`;
}

function introduction(plan: LocalPlan, page: string | undefined): string[] {
  const members = plan.members.map(({ id, address }) => `${id} ${address}`).join(", ");
  const { metricsPort: first, workers } = plan;
  const last = (first ?? 0) + plan.members.length + workers.length - 1;
  const metrics = first === undefined ? [] : [`metrics: http://127.0.0.1:${first}/metrics, to port ${last}`];
  return [
    `local cluster: ${members}`,
    ...metrics,
    ...(page === undefined ? [] : [`its page: ${page}`]),
    `in a second terminal: ${LocalCluster.tryCommand(plan)}`,
  ];
}

function showLine(change: Change): void {
  printLine(`${clockTime(change.atMs)}  ${change.kind.padEnd(10)}  ${printable(change.text)}`);
}

function showObject({ atMs, ...change }: Change): void {
  printLine(toJson({ at: new Date(atMs).toISOString(), ...change }));
}

/** Aborts when a stop is requested. */
class StopRequest {
  readonly requested: Promise<void>;
  #resolve: () => void = () => undefined;
  #asked = false;
  #second: () => void = () => undefined;

  constructor(durationMs: number | undefined) {
    this.requested = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    listenToSignals(STOP_SIGNALS, () => this.ask());
    if (durationMs !== undefined)
      void sleep(durationMs, undefined, { ref: false }).then(() => this.#resolve());
  }

  ask(): void {
    if (this.#asked) this.#second();
    this.#asked = true;
    this.#resolve();
  }

  /** The action at a second request, if stopping takes too long. */
  onSecond(run: () => void): void {
    this.#second = run;
  }
}

/** Draws the board's state. */
class ScreenView {
  /** A notice below the members, in place of the board's own. */
  notice: string | undefined;
  readonly #cluster: LocalCluster;
  readonly #terminal: Terminal;
  readonly #paint = paintFor(true, process.env);
  readonly #page: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(cluster: LocalCluster, stop: StopRequest, page: string | undefined) {
    this.#page = page;
    this.#cluster = cluster;
    const onKey = (key: string): void => {
      if (key.toLowerCase() === "k") cluster.kills = !cluster.kills;
      if (isQuit(key)) stop.ask();
      this.#draw();
    };
    this.#terminal = new Terminal(onKey, () => this.#draw());
  }

  open(): void {
    this.#terminal.enter();
    this.#timer = setInterval(() => this.#draw(), FRAME_MS);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#terminal.leave();
  }

  #draw(): void {
    const page = this.#page;
    const state = { ...this.#cluster.screenState(Date.now()), ...(page !== undefined && { page }) };
    const noticed = this.notice === undefined ? state : { ...state, notice: this.notice };
    this.#terminal.draw(renderScreen(noticed, this.#terminal.size, this.#paint));
  }
}
