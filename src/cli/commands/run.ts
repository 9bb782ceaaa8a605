import { withLeases } from "../connection.js";
import { usageError } from "../failure.js";
import { ownCommandBytes } from "../command-bytes.js";
import { runUnderLease } from "../run/run-under-lease.js";
import { sayError } from "../say.js";
import { type SharedOptions, settingsOf } from "../settings.js";

export interface RunOptions extends SharedOptions {
  readonly ttl?: string;
  readonly wait?: string;
  readonly try?: boolean;
  readonly killAfter?: string;
  readonly yield?: boolean;
  readonly conflictExitCode: number;
  readonly lostExitCode: number;
}

/** `leasehold run NAME -- COMMAND ARGS`. */
export async function run(resource: string, words: readonly string[], options: RunOptions): Promise<number> {
  // Without "--" an option of the command would be taken for one of ours: `run x ls -o json`.
  if (!process.argv.includes("--"))
    throw usageError('put "--" between the name and the command: run NAME -- COMMAND');
  const [command = "", ...args] = words;
  const { ttl, killAfter, conflictExitCode, lostExitCode } = options;
  const wait = options.try === true ? 0 : options.wait;
  return withLeases(settingsOf(options), (leases) =>
    runUnderLease(leases, {
      resource,
      command,
      args,
      bytes: ownCommandBytes(words),
      conflictExitCode,
      lostExitCode,
      yields: options.yield === true,
      say: sayError,
      ...(ttl !== undefined && { ttl }),
      ...(wait !== undefined && { wait }),
      ...(killAfter !== undefined && { killAfter }),
    }),
  );
}
