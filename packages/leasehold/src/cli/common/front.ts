/**
 * Stores on file systems may hang: an operation on a dead file server or a frozen file system never ends, and
 * Node cannot exit before it has ended. With such stores the command therefore runs in a second process, the
 * *process behind* the one that was started, the *front*. The front touches no store. It passes on signals
 * and exits with the command's code, even if the process behind is stuck; that one ends by itself when the
 * store responds. When the front dies, the process behind dies, too.
 *
 * Even a signal does not end a process with a thread in such an operation: the process becomes a zombie that
 * cannot be reaped, and its descriptors stay open. So the process behind closes its outputs before it dies,
 * and after a signal the front waits only briefly for a process that is a zombie or blocked.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, readFileSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { constants } from "node:os";
import { shortageExitCode, shortageOf } from "./shortage.js";
import { letSignalsGo, listenToSignals } from "./signals.js";

/** The title of the process behind. Its children do not inherit it, as they would a variable. */
const NAME_BEHIND = "leasehold-behind";

/**
 * The descriptor of the pipe from the process behind to the front. It carries a byte when signals are handled
 * there, then one with the exit code.
 */
const FRONT_FD = 3;

/** Kinds of stores whose operations use files. */
const FILES = /\+(?:file|block):/i;

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

/** Signals that end a command. */
const ENDING = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;
const endingSignals: ReadonlySet<NodeJS.Signals> = new Set(ENDING);

const STUCK_LOOK_MS = 100;
/**
 * How long the front waits for a stuck process after a signal. A stuck process releases no leases, so a
 * longer wait would be useless.
 */
const STUCK_MAX_MS = 1_000;

/** True in the process behind. */
export function isBehind(): boolean {
  return process.argv0 === NAME_BEHIND;
}

/** True if this process must be a front: its words or the environment name stores on file systems. */
export function needsFront(words: readonly string[]): boolean {
  const end = words.indexOf("--");
  const own = end === -1 ? words : words.slice(0, end);
  const at = own.findIndex((word) => /^--config(?:=|$)/.test(word));
  const option = own[at]?.includes("=") ? own[at].slice(own[at].indexOf("=") + 1) : own[at + 1];
  const config = at === -1 ? process.env["LEASEHOLD_CONFIG"] : option;
  const texts = [...own, process.env["LEASEHOLD_ENDPOINTS"] ?? "", config ? textIn(config) : ""];
  return texts.some((text) => FILES.test(text));
}

/** An unreadable file is refused later. */
function textIn(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Runs the same command in a process behind, and exits like it. */
export function beFront(): void {
  const behind = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    argv0: NAME_BEHIND,
    stdio: ["inherit", "inherit", "inherit", "pipe"],
    // The process behind must get the terminal's signals only once.
    detached: true,
  });
  let hears = false;
  /**
   * The first signal that arrives before the process behind handles signals. If it never does, a second
   * signal ends the front.
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
  // Node creates no pipes if the process could not be started because no descriptors were left.
  if (behind.pid === undefined) return;
  behind.stdio[FRONT_FD]?.on("data", (bytes: Buffer) => bytes.forEach(onByte));
  behind.stdio[FRONT_FD]?.on("error", () => undefined);
  behind.on("close", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    endBySignal(signal);
  });
}

/** Passes on signals; ends the front when the process behind is stuck. */
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
    // The pipe has no reader.
  }
  endBySignal(signal);
}

function endBySignal(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // This signal does not end the process.
  setTimeout(() => process.exit(128 + constants.signals[signal]), 100);
}

/**
 * True if the first thread of the process is dead but others are not, or if it is in an uninterruptible
 * operation. Unknown on systems other than Linux.
 */
function isStuck(pid: number | undefined): boolean {
  try {
    return /\) [ZD] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** Whether the front accepts a byte. */
function reaches(byte: number): boolean {
  try {
    return writeSync(FRONT_FD, Uint8Array.of(byte)) === 1;
  } catch {
    return false;
  }
}

/**
 * In the process behind: announces that signals are handled, and watches for the end of the front. This
 * process is then killed, and the guarded command ends as after any such kill.
 */
export function watchFront(): void {
  const end = (): void => void process.kill(process.pid, "SIGKILL");
  if (!reaches(0)) end();
  const link = new Socket({ fd: FRONT_FD, readable: true, writable: false });
  link.on("end", end).on("error", end).resume();
  link.unref();
}

/**
 * In the process behind: ends the front. Nothing more is written, so readers of the output need not wait for
 * this process.
 */
export function endFront(code: number): void {
  // A front that has just exited needs no code.
  reaches(code);
  closeOutputs();
}

/**
 * For commands that do not handle signals: the process behind closes its outputs and then dies of the signal.
 */
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
