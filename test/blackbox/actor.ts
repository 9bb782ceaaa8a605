import { type ChildProcess, spawn } from "node:child_process";
import { FakeClock } from "../e2e/fake-clock.js";
import type { Journal } from "./journal.js";
import { nowNs } from "./journal.js";
import type { Place } from "./site.js";
import { steadyClockOf } from "../support/steady-clock.js";

/** The command line and environment of one start. Every start of a process gets a journal of its own. */
export interface Start {
  readonly words: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

export interface ActorOptions {
  readonly name: string;
  readonly place: Place;
  readonly clock: FakeClock;
  readonly journal: Journal;
  /** `number` counts the starts of this process from 1. */
  readonly start: (number: number) => Start;
  /**
   * `onNews` receives the messages on the process's IPC channel, `onLine` each line of its standard error.
   */
  readonly onNews: (news: unknown) => void;
  readonly onLine: (line: string, pid: number) => void;
  /** Called when the process ends although nobody killed it. */
  readonly onDeath: (why: string) => void;
}

const endMsMax = 15_000;

/**
 * One process of a run. It can be killed, stopped and restarted, and each of these is written to the journal.
 */
export class Actor {
  readonly name: string;
  readonly place: Place;
  readonly clock: FakeClock;
  /**
   * Until this time the largest offset of its clock may still have an effect. Steady clock of this process,
   * ms.
   */
  clockUntilMs = 0;
  readonly #options: ActorOptions;
  #child: ChildProcess | undefined;
  #gone: Promise<void> = Promise.resolve();
  #starts = 0;
  #isEnding = false;
  #isStopped = false;

  constructor(options: ActorOptions) {
    this.#options = options;
    this.name = options.name;
    this.place = options.place;
    this.clock = options.clock;
  }

  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  start(): void {
    const { words, env } = this.#options.start(++this.#starts);
    const inside = ["netns", "exec", this.place.namespace, process.execPath, ...words];
    const child = spawn("ip", inside, {
      env: { ...process.env, ...env, ...this.clock.env },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      // Ctrl-C in a terminal must reach only the process that runs the test.
      detached: true,
    });
    this.#child = child;
    this.#isEnding = false;
    this.#isStopped = false;
    child.on("message", (news) => this.#options.onNews(news));
    // The first message means that `ip` has become Node by `exec`, under the same pid.
    child.once("message", () => this.#checkClock(child));
    let rest = "";
    let lastLine = "";
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      lastLine = lines.at(-1) ?? lastLine;
      for (const line of lines) this.#options.onLine(line, child.pid!);
    });
    this.#gone = new Promise((resolve) => {
      child.on("error", (error) => this.#options.onDeath(error.message));
      child.on("close", (code, signal) => {
        if (this.#child === child && !this.#isEnding)
          this.#options.onDeath(`ended by itself with ${signal ?? code}: ${lastLine}`);
        resolve();
      });
    });
  }

  /** Sends SIGKILL. Resolves when the process is gone and its address is free. */
  async kill(): Promise<void> {
    this.#isEnding = true;
    this.#signal("SIGKILL");
    this.#note("killed");
    await this.#gone;
  }

  /** Sends a message to the process over its IPC channel. */
  tell(message: object): void {
    if (this.#child?.connected === true) this.#child.send(message);
  }

  stop(): void {
    this.#signal("SIGSTOP");
    this.#isStopped = true;
    this.#note("stopped");
  }

  /** Writes the journal first, so that the process's first look at its lease comes after the entry. */
  continue(): void {
    this.#note("continued");
    this.#isStopped = false;
    this.#signal("SIGCONT");
  }

  /** Ends the process by SIGTERM, and by SIGKILL if it takes too long. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.#signal("SIGTERM");
    const timer = setTimeout(() => this.#signal("SIGKILL"), endMsMax);
    await this.#gone;
    clearTimeout(timer);
  }

  /** Kills the process without a journal entry, for cleaning up. */
  destroy(): void {
    this.#isEnding = true;
    this.#signal("SIGKILL");
  }

  #signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  #note(event: "killed" | "stopped" | "continued"): void {
    this.#options.journal.write({ event, m: nowNs(), pid: this.pid });
  }

  #checkClock(child: ChildProcess): void {
    let theirs: string;
    try {
      theirs = steadyClockOf(child.pid!);
    } catch {
      return; // The process is gone already.
    }
    const ours = steadyClockOf("self");
    if (theirs !== ours)
      throw new Error(`${this.name} reads another steady clock: ${theirs} instead of ${ours}`);
  }
}
