/**
 * The shell between the guard and the command. It leads the command's process group and begins as a closed
 * gate: the command starts only when the guard writes the command's words, which it does after `run` knows
 * the group. If the guard dies before that, the descriptor closes and the gate exits. If the guard dies
 * later, the gate kills the whole group, which nothing else can do if `run` has been stopped or killed as
 * well.
 *
 * It is a shell, because a shell can exec, costs a millisecond, and knows how a process ended: Node reports a
 * death by a real-time signal as exit code 0.
 */
import { accessSync, constants, statSync } from "node:fs";

export const GATE_SHELL = "/bin/sh";

/** The gate's descriptor of the bidirectional pipe to the guard. */
export const GATE_FD = 3;

/**
 * The gate's messages, one line of JSON each: `"started"` just before the command's exec, so that signals
 * reach it from now on; then its exit status.
 */
export type FromGate = "started" | number;

/** Signals meant for the command. The gate survives them, to report the command's end. */
const SIGNALS = "HUP INT QUIT PIPE ALRM TERM USR1 USR2";

/**
 * The gate's own messages ("Killed") go nowhere; the command's standard error is at descriptor 4. The
 * background part ends the command together with the guard: first all other processes of the session, whose
 * number is `$$`, as listed in /proc, then the gate's group with itself. A process that forks after it was
 * listed leaves a child for the next list, which may do the same: two lists were too few. The command runs in
 * the foreground, as a shell gives background processes another input and other signals. After it, the gate
 * reaps the background part, as not every init process of a container does so.
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
  for pass in 1 2 3 4 5 6; do
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

/** The line that opens the gate: the command's words, byte for byte. */
export function gateLine(words: readonly string[]): Buffer {
  return Buffer.from(`${words.map(quoted).join(" ")}\n`, "latin1");
}

/** A line cannot contain a line break, which is the shell's variable `n`. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`).replaceAll("\n", `'"$n"'`)}'`;
}

/**
 * The words with the path of the executable program, or the error code of `exec`. Resolved before the gate
 * opens, so that a missing command differs from one that exits with 127.
 */
export function resolveCommand(words: readonly string[], searchPath: string): readonly string[] | string {
  const [name = "", ...args] = words;
  if (name.includes("/")) return faultOf(name) ?? words;
  let fault = "ENOENT";
  for (const folder of name === "" ? [] : searchPath.split(":")) {
    const path = `${folder === "" ? "." : Buffer.from(folder).toString("latin1")}/${name}`;
    const found = faultOf(path);
    // The shell's "exec" would treat a leading dash as an option.
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
