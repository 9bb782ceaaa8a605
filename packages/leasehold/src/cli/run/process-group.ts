import { closeSync, openSync, readFileSync, readSync, readdirSync } from "node:fs";

const isLinux = process.platform === "linux";

/** Sends a signal to every process of a group. Does nothing if none is left. */
export function signalGroup(groupId: number, signal: NodeJS.Signals): void {
  send(-groupId, signal);
}

function send(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // ESRCH: all have ended. EPERM: a process has changed its user and cannot be controlled.
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

/** True if no process of the group is left. Unreaped zombies do not count. */
export function groupIsGone(groupId: number): boolean {
  try {
    process.kill(-groupId, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
  return isLinux && !stats().some(({ group }) => group === groupId);
}

/** The variable that every process of a command inherits; its value ends with the command's unique mark. */
export const MARK_VARIABLE = "LEASE_RUN";

/** The mark of a command: that of the enclosing `run`, if any, followed by its own. */
export function markWithin(outer: string | undefined, own: string): string {
  return outer === undefined || outer === "" ? own : `${outer}/${own}`;
}

interface Found {
  /** In the command's process group. */
  readonly group: readonly Stat[];
  /** In its session, in another group, like `timeout` and the jobs of `set -m`. */
  readonly session: readonly Stat[];
  /** In a separate session, as part of a nested `leasehold run`. */
  readonly nested: readonly Stat[];
  /** In a separate session: a daemon, which is meant to stay. */
  readonly daemons: readonly Stat[];
}

/**
 * All processes of one command. Without /proc, these are its process group. On Linux, processes that have
 * left the group are also found: by their session, which a program leaves only on purpose, and by the mark in
 * their environment.
 */
export class CommandProcesses {
  readonly #groupId: number;
  readonly #mark: string;
  /** The start time of the command; older processes do not belong to it. */
  readonly #since: number;

  constructor(groupId: number, mark: string) {
    this.#groupId = groupId;
    this.#mark = `${MARK_VARIABLE}=${mark}`;
    this.#since = readStat(String(groupId))?.started ?? 0;
  }

  /** Passes a signal to the command: to its process group, like a terminal. */
  forward(signal: NodeJS.Signals): void {
    signalGroup(this.#groupId, signal);
  }

  /** Sends SIGTERM to all but daemons. A nested `run` passes it on by itself. */
  terminate(): void {
    const { session } = this.#find();
    // A stopped process handles SIGTERM only when it continues.
    for (const signal of ["SIGTERM", "SIGCONT"] as const) {
      signalGroup(this.#groupId, signal);
      for (const { pid } of session) send(pid, signal);
    }
  }

  /**
   * At the end of the lease, kills everything, even daemons. The next check finds processes that were forked
   * meanwhile.
   */
  kill(): void {
    const { session, nested, daemons } = this.#find();
    this.#killAll([...session, ...nested, ...daemons]);
  }

  /**
   * After the end of the command, kills its remaining processes except for daemons. When there are none,
   * returns the daemons as `name (pid)`.
   */
  sweep(): string[] | undefined {
    const { group, session, nested, daemons } = this.#find();
    const isGone =
      session.length + nested.length === 0 && (isLinux ? group.length === 0 : groupIsGone(this.#groupId));
    if (isGone) return daemons.map(({ pid, name }) => `${name} (${pid})`);
    this.#killAll([...session, ...nested]);
    return undefined;
  }

  #killAll(others: readonly Stat[]): void {
    signalGroup(this.#groupId, "SIGKILL");
    for (const { pid } of others) send(pid, "SIGKILL");
  }

  #find(): Found {
    const group: Stat[] = [];
    const session: Stat[] = [];
    const nested: Stat[] = [];
    const daemons: Stat[] = [];
    for (const stat of stats()) {
      if (stat.group === this.#groupId) group.push(stat);
      else if (stat.session === this.#groupId) session.push(stat);
      else if (stat.started >= this.#since) {
        const mark = this.#markOf(stat.pid);
        if (mark === "nested") nested.push(stat);
        else if (mark === "own") daemons.push(stat);
      }
    }
    return { group, session, nested, daemons };
  }

  #markOf(pid: number): "own" | "nested" | undefined {
    let environment: string;
    try {
      environment = readFileSync(`/proc/${pid}/environ`, "latin1");
    } catch {
      return undefined; // It ended meanwhile, or is another user's.
    }
    const at = environment.indexOf(this.#mark);
    if (at === -1) return undefined;
    return environment[at + this.#mark.length] === "/" ? "nested" : "own";
  }
}

interface Stat {
  readonly pid: number;
  readonly name: string;
  readonly group: number;
  readonly session: number;
  /** In ticks since the machine started. */
  readonly started: number;
}

/** Enough even if processes are started without a pause; the next check finds later ones. */
const listingsMax = 10;

/**
 * Zombies are left out: a container's first process often reaps no orphans, and they would keep a finished
 * group "alive". A process may fork after /proc was listed and end before it is read, so that its child is
 * not in the list. Therefore /proc is listed again until there are no new processes.
 */
function stats(): Stat[] {
  if (!isLinux) return [];
  const seen = new Set<string>();
  const found: Stat[] = [];
  for (let listings = 0; listings < listingsMax; listings += 1) {
    const fresh = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry) && !seen.has(entry));
    if (fresh.length === 0) break;
    for (const entry of fresh) {
      seen.add(entry);
      const stat = readStat(entry);
      if (stat !== undefined) found.push(stat);
    }
  }
  return found;
}

/**
 * More than the longest line of /proc/PID/stat: 52 numbers of at most 20 digits, and a short name. One buffer
 * for all files: `readFileSync` allocates 64 KiB for each file of /proc, which would take most of the time.
 */
const statBytes = Buffer.allocUnsafe(2_048);

function readStat(processId: string): Stat | undefined {
  let text: string;
  try {
    const file = openSync(`/proc/${processId}/stat`, "r");
    try {
      text = statBytes.toString("latin1", 0, readSync(file, statBytes));
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined; // The process ended meanwhile.
  }
  // The name in parentheses may itself contain blanks and parentheses, so the fields begin after the last
  // parenthesis.
  const end = text.lastIndexOf(")");
  const fields = text.slice(end + 2).split(" ");
  const [state, , group, session] = fields;
  if (state === "Z" || state === "X") return undefined;
  const name = text.slice(text.indexOf("(") + 1, end);
  return {
    pid: Number(processId),
    name,
    group: Number(group),
    session: Number(session),
    started: Number(fields[19]),
  };
}
