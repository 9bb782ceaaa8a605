/**
 * The first process of a container (PID 1) is the parent of every orphan, and has to wait for each of them:
 * otherwise they stay zombies as long as the container runs. Node waits for its own children only, so a shell
 * takes its place, where Node can replace its process (from 22.15 on), and runs the command as its child.
 */

/** Replaces the process, in the versions of Node that have it. */
type Replace = (file: string, args: readonly string[], env: NodeJS.ProcessEnv) => never;

const shell = "/bin/sh";

/** Passes signals on, waits for all children, and exits as the command does. */
const script = `
"$@" <&0 & command=$!
for signal in HUP INT QUIT TERM USR1 USR2; do
  trap "kill -$signal $command 2>/dev/null" "$signal"
done
while :; do
  wait "$command"; status=$?
  kill -0 "$command" 2>/dev/null || exit "$status"
done`;

/** Leaves this process to a shell if it is the first of a container; otherwise nothing happens. */
export function leaveToInit(): void {
  const { execve } = process as { readonly execve?: Replace };
  if (process.pid !== 1 || execve === undefined) return;
  const words = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  execve.call(process, shell, [shell, "-c", script, "leasehold", ...words], process.env);
}
