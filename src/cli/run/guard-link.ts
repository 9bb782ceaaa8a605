import type { Socket } from "node:net";
import type { Cause, Deadline, Limits } from "./guard-policy.js";

/** What `run` tells its guard. */
export type ToGuard =
  | {
      readonly type: "start";
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly deadline: Deadline;
      readonly limits: Limits;
    }
  /** A renewal moved the deadline (or a clock fault brought it nearer). */
  | { readonly type: "deadline"; readonly deadline: Deadline }
  /** A signal for the child. */
  | { readonly type: "signal"; readonly signal: NodeJS.Signals }
  /** The lease is lost: end the child at once. */
  | { readonly type: "lost" };

/** What the guard tells `run`. */
export type FromGuard =
  | { readonly type: "started"; readonly pid: number }
  | { readonly type: "not-started"; readonly code: string; readonly message: string }
  | { readonly type: "ending"; readonly cause: Cause }
  /** The child and its whole process group are gone. */
  | {
      readonly type: "gone";
      readonly code: number | null;
      readonly signal: NodeJS.Signals | null;
      readonly cause?: Cause;
    };

/** The descriptor, in the guard, of the one pipe (both ways) that ties it to `run`. */
export const LINK_FD = 3;

/** The longest line: a command's arguments, which Linux limits to 2 MiB together, as JSON. */
const LINE_CHARS_MAX = 16 * 1024 * 1024;

export function send(link: Socket, message: ToGuard | FromGuard): void {
  if (link.writable) link.write(`${JSON.stringify(message)}\n`);
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

/** Now, on both clocks that a {@link Deadline} is given on. */
export function now(): Deadline {
  return { monotonicMs: Number(process.hrtime.bigint()) / 1e6, wallMs: Date.now() };
}
