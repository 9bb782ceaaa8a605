import type { Socket } from "node:net";
import { readBothClocks } from "../../common/both-clocks.js";
import type { Clock } from "../../common/ports.js";
import type { Cause, Deadline, Limits } from "./guard-policy.js";

/** Messages from `run` to its guard. */
export type ToGuard =
  | {
      readonly type: "start";
      /** The command and its arguments, one character for each byte. */
      readonly words: readonly string[];
      /** Variables that only `env` can pass on unchanged, in the same form. */
      readonly variables: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly deadline: Deadline;
      readonly limits: Limits;
    }
  /** `run` knows the process group: the command may start, if the present deadline leaves time for that. */
  | { readonly type: "go"; readonly deadline: Deadline }
  /** A renewal moved the deadline, or a clock fault brought it nearer. */
  | { readonly type: "deadline"; readonly deadline: Deadline }
  /** A signal for the child. */
  | { readonly type: "signal"; readonly signal: NodeJS.Signals }
  /** The lease is lost: the guard must end the child at once. */
  | { readonly type: "lost" };

/** Messages from the guard to `run`. */
export type FromGuard =
  /** The process group exists; the command has not been started. */
  | { readonly type: "ready"; readonly groupId: number }
  | { readonly type: "not-started"; readonly code: string; readonly message: string }
  /** The child and all its descendants have ended, except for daemons. */
  | {
      readonly type: "gone";
      /** 128 + n if signal n ended it. */
      readonly code: number | null;
      /** The signal that ended the command's shell, which then could not report the command's end. */
      readonly signal: NodeJS.Signals | null;
      readonly cause?: Cause;
      /** The command ended before the deadline. */
      readonly inTime: boolean;
      readonly daemons: readonly string[];
    };

/**
 * The guard's descriptors of the two pipes to `run`. There is one for each direction, because writing to a
 * guard that has just ended closes that pipe, while the guard's last message must still be readable.
 */
export const FROM_RUN_FD = 3;
export const TO_RUN_FD = 4;

/** The maximum length of a line: a command's arguments, which Linux limits to 2 MiB in total, as JSON. */
const LINE_CHARS_MAX = 16 * 1024 * 1024;

export function send(link: Socket, message: ToGuard | FromGuard): void {
  if (link.writable) link.write(`${JSON.stringify(message)}\n`);
}

/** For a write-only pipe; the other pipe reports the loss of the reader. */
export function ignoreErrors(link: Socket): void {
  link.on("error", () => undefined);
  link.resume();
}

/** Calls `onMessage` for each line, and `onEnd` once when the other side has closed the pipe. */
export function receive<Message>(
  link: Socket,
  onMessage: (message: Message) => void,
  onEnd: () => void,
): void {
  let pending = "";
  let ended = false;
  const end = (): void => {
    if (ended) return;
    ended = true;
    onEnd();
  };
  link.setEncoding("utf8");
  link.on("data", (text: string) => {
    const lines = (pending + text).split("\n");
    pending = lines.pop() ?? "";
    for (const line of lines) onMessage(JSON.parse(line) as Message);
    if (pending.length > LINE_CHARS_MAX) link.destroy();
  });
  // A reset means the same as the end.
  link.on("error", end);
  link.on("end", end);
  link.on("close", end);
}

const clock: Clock = {
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  wallMs: () => Date.now(),
};

/** The current time on both clocks of a {@link Deadline}. */
export function now(): Deadline {
  return readBothClocks(clock);
}
