/**
 * The first process of a container (PID 1) becomes the parent of every orphan, and has to reap each of them:
 * otherwise they stay zombies as long as the container runs. Node reaps only its own children. So if Node can
 * replace its process (from 22.15 on), a shell takes over and runs the command as its child.
 */

/** Replaces the process. Only some versions of Node have it. */
type Replace = (file: string, args: readonly string[], env: NodeJS.ProcessEnv) => never;

const shell = "/bin/sh";

/** Passes on signals, waits for all children, and exits as the command does. */
const script = `
"$@" <&0 & command=$!
for signal in HUP INT QUIT TERM USR1 USR2; do
  trap "kill -$signal $command 2>/dev/null" "$signal"
done
while :; do
  wait "$command"; status=$?
  kill -0 "$command" 2>/dev/null || exit "$status"
done`;

/** Replaces this process with a shell if it is the first of a container; otherwise does nothing. */
export function leaveToInit(): void {
  const { execve } = process as { readonly execve?: Replace };
  if (process.pid !== 1 || execve === undefined) return;
  const words = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  execve.call(process, shell, [shell, "-c", script, "leasehold", ...words], process.env);
}
