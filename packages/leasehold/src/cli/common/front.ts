/**
 * Stores that are files may hang: an operation on a dead file server or a frozen file system never ends, and
 * Node cannot end before it, however it is asked to. So where such stores are used, the command runs in a
 * process *behind* the one that was started, the *front*. The front touches no store. It passes signals on,
 * and ends with the exit code of the command whatever becomes of the process behind, which ends by itself
 * when the store goes on. The two are one: when the front dies, so does what is behind.
 *
 * A signal does not end a process with a thread in such an operation either: it becomes a zombie that nobody
 * can reap, and its descriptors stay open. So the process behind closes its outputs before it dies, and the
 * front waits only for a short time for one that was signaled and is a zombie or blocked.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, readFileSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { constants } from "node:os";
import { shortageExitCode, shortageOf } from "./shortage.js";
import { letSignalsGo, listenToSignals } from "./signals.js";

/** What the process behind is called: other than a variable, this is not handed on to what it starts. */
const NAME_BEHIND = "leasehold-behind";

/**
 * The descriptor, behind, of the pipe that ties it to the front: a byte when signals are heard there, then
 * one with the exit code.
 */
const FRONT_FD = 3;

/** Kinds of stores whose operations use files. */
const FILES = /\+(?:file|block|sanlock):/i;

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

/** Signals that ask a command to end. */
const ENDING = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;
const endingSignals: ReadonlySet<NodeJS.Signals> = new Set(ENDING);

const STUCK_LOOK_MS = 100;
/**
 * After a signal, the front waits this long for a process behind that is stuck. Leases need no longer wait: a
 * process that is stuck releases none.
 */
const STUCK_MAX_MS = 1_000;

/** True in the process behind. */
export function isBehind(): boolean {
  return process.argv0 === NAME_BEHIND;
}

/** True when this process is to be a front: its words, or the environment, name stores that are files. */
export function needsFront(words: readonly string[]): boolean {
  const end = words.indexOf("--");
  const own = end === -1 ? words : words.slice(0, end);
  return [...own, process.env["LEASEHOLD_ENDPOINTS"] ?? ""].some((text) => FILES.test(text));
}

/** Runs the same command in a process behind, and ends as it does. */
export function beFront(): void {
  const behind = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    argv0: NAME_BEHIND,
    stdio: ["inherit", "inherit", "inherit", "pipe"],
    // What a terminal sends to all of the foreground must reach it once.
    detached: true,
  });
  let hears = false;
  /**
   * The first that came before the process behind heard any. If it never does, a second one ends it all the
   * same.
   */
  let early: NodeJS.Signals | undefined;
  const pass = passer(behind);
  listenToSignals(SIGNALS, (signal) => {
    if (hears || early !== undefined) pass(signal);
    else early = signal;
  });
  const onByte = (byte: number): void => {
    if (hears) process.exit(byte);
    hears = true;
    if (early !== undefined) pass(early);
  };
  behind.on("error", (error) => {
    const shortage = shortageOf(error);
    writeSync(process.stderr.fd, `leasehold: ${shortage ?? `unexpected: ${error.message}`}\n`);
    process.exit(shortage === undefined ? 1 : shortageExitCode);
  });
  // Node makes no pipes for a process that could not be started for want of descriptors.
  if (behind.pid === undefined) return;
  behind.stdio[FRONT_FD]?.on("data", (bytes: Buffer) => bytes.forEach(onByte));
  behind.stdio[FRONT_FD]?.on("error", () => undefined);
  behind.on("close", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    endBySignal(signal);
  });
}

/** Passes signals on; ends the front when the process behind is stuck and so cannot end. */
function passer(behind: ChildProcess): (signal: NodeJS.Signals) => void {
  let looking: NodeJS.Timeout | undefined;
  return (signal) => {
    behind.kill(signal);
    if (!endingSignals.has(signal)) return;
    if (looking !== undefined && isStuck(behind.pid)) leave(behind.pid, signal);
    let stuckMs = 0;
    looking ??= setInterval(() => {
      stuckMs = isStuck(behind.pid) ? stuckMs + STUCK_LOOK_MS : 0;
      if (stuckMs >= STUCK_MAX_MS) leave(behind.pid, signal);
    }, STUCK_LOOK_MS);
  };
}

/** Ends the front, not the process behind. */
function leave(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    writeSync(
      process.stderr.fd,
      `leasehold: ended by ${signal}; process ${pid} still waits for a file system and ends when that responds\n`,
    );
  } catch {
    // Nobody reads it.
  }
  endBySignal(signal);
}

function endBySignal(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // A signal that this process does not die of.
  setTimeout(() => process.exit(128 + constants.signals[signal]), 100);
}

/**
 * True when the first thread of the process is dead while others are not, or is in an operation that cannot
 * be interrupted. Elsewhere than on Linux that is not known.
 */
function isStuck(pid: number | undefined): boolean {
  try {
    return /\) [ZD] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** Whether the front is there to take a byte. */
function reaches(byte: number): boolean {
  try {
    return writeSync(FRONT_FD, Uint8Array.of(byte)) === 1;
  } catch {
    return false;
  }
}

/**
 * Behind: says that signals are heard, and looks whether the front is still there. What it guards ends as if
 * this process had been killed, and so it is.
 */
export function watchFront(): void {
  const end = (): void => void process.kill(process.pid, "SIGKILL");
  if (!reaches(0)) end();
  const link = new Socket({ fd: FRONT_FD, readable: true, writable: false });
  link.on("end", end).on("error", end).resume();
  link.unref();
}

/**
 * Behind: tells the front to end. Nothing more is written, so readers of our output need not wait for this
 * process.
 */
export function endFront(code: number): void {
  // A front that has gone in this moment needs no code.
  reaches(code);
  closeOutputs();
}

/** For a command that does not look after signals: behind, it dies of them with its outputs closed. */
export function letSignalsEnd(): void {
  if (!isBehind()) {
    letSignalsGo();
    return;
  }
  listenToSignals(ENDING, (signal) => {
    closeOutputs();
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

function closeOutputs(): void {
  for (const fd of [0, 1, 2]) closeSync(fd);
}
