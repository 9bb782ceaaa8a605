import { type ChildProcess, spawn } from "node:child_process";
import { FakeClock } from "../e2e/fake-clock.js";
import type { Journal } from "./journal.js";
import { nowNs } from "./journal.js";
import type { Place } from "./site.js";
import { steadyClockOf } from "../support/steady-clock.js";

/** How a process is started: anew at each start, as each has a journal of its own. */
export interface Start {
  readonly words: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

export interface ActorOptions {
  readonly name: string;
  readonly place: Place;
  readonly clock: FakeClock;
  readonly journal: Journal;
  /** `number` counts from 1. */
  readonly start: (number: number) => Start;
  /** What it told over its channel, and each line that it wrote on standard error. */
  readonly onNews: (news: unknown) => void;
  readonly onLine: (line: string, pid: number) => void;
  /** It ended although nobody had killed it. */
  readonly onDeath: (why: string) => void;
}

const endMsMax = 15_000;

/** One process of the play: it can be killed, stopped and started anew, and every deed is written down. */
export class Actor {
  readonly name: string;
  readonly place: Place;
  readonly clock: FakeClock;
  /** The largest offset of its clock since then may still be felt, on this process's steady clock in ms. */
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
      // A terminal's Ctrl-C is for the one who directs the play.
      detached: true,
    });
    this.#child = child;
    this.#isEnding = false;
    this.#isStopped = false;
    child.on("message", (news) => this.#options.onNews(news));
    // Only now is it Node, and no longer `ip`; this is the same process.
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

  /** kill -9. Resolves when the process is gone, and its address is free. */
  async kill(): Promise<void> {
    this.#isEnding = true;
    this.#signal("SIGKILL");
    this.#note("killed");
    await this.#gone;
  }

  /** To the process, over the channel on which it tells its news. */
  tell(message: object): void {
    if (this.#child?.connected === true) this.#child.send(message);
  }

  stop(): void {
    this.#signal("SIGSTOP");
    this.#isStopped = true;
    this.#note("stopped");
  }

  /** Written down before it is done, so that the first look after it counts as such. */
  continue(): void {
    this.#note("continued");
    this.#isStopped = false;
    this.#signal("SIGCONT");
  }

  /** The orderly end, within a bound. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.#signal("SIGTERM");
    const timer = setTimeout(() => this.#signal("SIGKILL"), endMsMax);
    await this.#gone;
    clearTimeout(timer);
  }

  /** The end at once, without a word: for the tidying up. */
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
      return; // It is gone already.
    }
    const ours = steadyClockOf("self");
    if (theirs !== ours) throw new Error(`${this.name} has another steady clock: ${theirs}, and not ${ours}`);
  }
}
