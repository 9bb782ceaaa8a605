import type { Socket } from "node:net";
import { readBothClocks } from "../../common/both-clocks.js";
import type { Clock } from "../../common/ports.js";
import type { Cause, Deadline, Limits } from "./guard-policy.js";

/** What `run` tells its guard. */
export type ToGuard =
  | {
      readonly type: "start";
      /** One character for each byte: the command, its arguments. */
      readonly words: readonly string[];
      /** Variables that only `env` can hand on as they are; in the same form. */
      readonly variables: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly deadline: Deadline;
      readonly limits: Limits;
    }
  /**
   * `run` knows the process group: the command may start, if the deadline as it is now leaves time for that.
   */
  | { readonly type: "go"; readonly deadline: Deadline }
  /** A renewal moved the deadline (or a clock fault brought it nearer). */
  | { readonly type: "deadline"; readonly deadline: Deadline }
  /** A signal for the child. */
  | { readonly type: "signal"; readonly signal: NodeJS.Signals }
  /** The lease is lost: end the child at once. */
  | { readonly type: "lost" };

/** What the guard tells `run`. */
export type FromGuard =
  /** The process group is there; nothing of the command has been executed. */
  | { readonly type: "ready"; readonly groupId: number }
  | { readonly type: "not-started"; readonly code: string; readonly message: string }
  /** The child and all that it started are gone, but for the daemons. */
  | {
      readonly type: "gone";
      /** 128 + n after a death by signal n. */
      readonly code: number | null;
      /** What ended the shell above the command, which then could not say how the command ended. */
      readonly signal: NodeJS.Signals | null;
      readonly cause?: Cause;
      /** The deadline had not come by then. */
      readonly inTime: boolean;
      readonly daemons: readonly string[];
    };

/**
 * The descriptors, in the guard, of the two pipes that tie it to `run`. One for each direction: a write to a
 * guard that has just ended closes its pipe, and what the guard said last has to be readable all the same.
 */
export const FROM_RUN_FD = 3;
export const TO_RUN_FD = 4;

/** The longest line: a command's arguments, which Linux limits to 2 MiB together, as JSON. */
const LINE_CHARS_MAX = 16 * 1024 * 1024;

export function send(link: Socket, message: ToGuard | FromGuard): void {
  if (link.writable) link.write(`${JSON.stringify(message)}\n`);
}

/** For a pipe that is only written to: that nobody reads it any more is heard by the other pipe. */
export function ignoreErrors(link: Socket): void {
  link.on("error", () => undefined);
  link.resume();
}

/** Calls `onMessage` for each line, `onEnd` once when the other side has gone. */
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
  // A reset is the same news as an end: the other side has gone.
  link.on("error", end);
  link.on("end", end);
  link.on("close", end);
}

const clock: Clock = {
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  wallMs: () => Date.now(),
};

/** Now, on both clocks that a {@link Deadline} is given on. */
export function now(): Deadline {
  return readBothClocks(clock);
}
