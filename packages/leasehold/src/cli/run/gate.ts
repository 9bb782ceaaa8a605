/**
 * The shell that stands between the guard and the command. It is the leader of the command's process group
 * and begins as a closed gate: the command starts only when the guard writes its words, which it does after
 * `run` has heard of the group. If the guard dies first, the descriptor ends and so does the gate. If it dies
 * later, the gate ends the whole group, which nobody else can do when `run` has been stopped or killed as
 * well.
 *
 * A shell, because it can exec, costs a millisecond, and knows how a process ended: Node reports a death by a
 * real-time signal as exit code 0.
 */
import { accessSync, constants, statSync } from "node:fs";

export const GATE_SHELL = "/bin/sh";

/** The descriptor, in the gate, of the pipe (both ways) that ties it to the guard. */
export const GATE_FD = 3;

/**
 * What the gate says, one line of JSON each: `"started"` when the next thing is the command's exec, so that
 * signals reach it from now on; then its exit status.
 */
export type FromGate = "started" | number;

/**
 * What a guard passes on, and what else may be sent to a group: they are for the command. The gate lives on
 * to report its end.
 */
const SIGNALS = "HUP INT QUIT PIPE ALRM TERM USR1 USR2";

/**
 * Its own messages ("Killed") go nowhere; the command's standard error waits at descriptor 4. The part in the
 * background is what ends the command with the guard: first all others of the session, whose number is `$$`,
 * as /proc has them, then the gate's group with itself. The command runs in the foreground, as a shell gives
 * background processes another input and other signals. After it, the background part is collected, as not
 * every first process of a container does so.
 */
export const GATE_SCRIPT = `exec 4>&2 2>/dev/null
trap : ${SIGNALS}
n='
'
IFS= read -r words <&3 || exit
{
  trap '' ${SIGNALS}
  read -r end <&3
  read -r self rest </proc/self/stat
  for pass in 1 2; do
    for stat in $(grep -lE "\\\\) [^ZX] [0-9]+ [0-9]+ $$ " /proc/[0-9]*/stat); do
      stat=\${stat#/proc/}
      [ "\${stat%/stat}" = "$self" ] || kill -KILL "\${stat%/stat}"
    done
  done
  kill -KILL 0
} </dev/null >/dev/null 4>&- &
( echo '"started"' >&3; exec 2>&4 3<&- 4>&-; eval "exec $words" )
status=$?
kill -KILL $!; wait
echo $status >&3`;

/** The one line that opens the gate: the words of the command, each byte of them as it is. */
export function gateLine(words: readonly string[]): Buffer {
  return Buffer.from(`${words.map(quoted).join(" ")}\n`, "latin1");
}

/** A line holds no line break, so that one is the shell's variable `n`. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`).replaceAll("\n", `'"$n"'`)}'`;
}

/**
 * The words with a program that can be executed in front, or the error code that `exec` would have.
 * Looked up before the gate, so that a missing command is told from one that ends with 127.
 */
export function resolveCommand(words: readonly string[], searchPath: string): readonly string[] | string {
  const [name = "", ...args] = words;
  if (name.includes("/")) return faultOf(name) ?? words;
  let fault = "ENOENT";
  for (const folder of name === "" ? [] : searchPath.split(":")) {
    const path = `${folder === "" ? "." : Buffer.from(folder).toString("latin1")}/${name}`;
    const found = faultOf(path);
    // A shell's "exec" would take a leading dash for an option.
    if (found === undefined) return name.startsWith("-") ? [path, ...args] : words;
    if (found !== "ENOENT") fault = found;
  }
  return fault;
}

function faultOf(path: string): string | undefined {
  const bytes = Buffer.from(path, "latin1");
  try {
    if (!statSync(bytes).isFile()) return "EACCES";
    accessSync(bytes, constants.X_OK);
    return undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOTDIR" ? "ENOENT" : (code ?? "ENOENT");
  }
}
