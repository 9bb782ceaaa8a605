/** A server of the consistent core in your own program: `@leasehold/core`. Its clients open `core://…`. */
import type { CoreFlags, RunningCore } from "./server/config/flags.js";
import { type Logger, silent } from "leasehold/runtime";
import { configOf, startCore as startServer } from "./server/index.js";

export type { CoreFlags, RunningCore } from "./server/config/flags.js";

/**
 * The settings of `leasehold core` under etcd's names, as text (`docs/cli-core.md`), and a destination for
 * log messages.
 */
export interface CoreServerOptions extends CoreFlags {
  readonly logger?: Logger | undefined;
}

/**
 * Starts a server of the core, as `leasehold core` does. Resolves when it listens, whether or not there is a
 * leader. The server works on this event loop: a program that blocks it for longer than the election timeout
 * (default 1 s) loses leadership; run the server in a process of its own instead.
 *
 * @throws LeaseholdError `INVALID_CONFIG`, `DATA_IN_USE`, `LOG_CORRUPT`, `VERSION_MISMATCH`, `DISK_FAILED`.
 * @example
 * ```ts
 * import { startCore } from "@leasehold/core";
 *
 * const core = await startCore({ name: "a", dataDir: "/var/lib/core" });
 * console.log(`serves clients at ${core.clientUrls.join(",")}`);
 * await core.close();
 * ```
 */
export async function startCore(options: CoreServerOptions = {}): Promise<RunningCore> {
  const { logger = silent, ...flags } = options;
  return startServer(configOf(flags), logger);
}
