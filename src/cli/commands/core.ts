import { setTimeout as sleep } from "node:timers/promises";
import { type CoreFlags, startCore } from "../../entry/core.js";
import type { Logger } from "../../runtime/logger.js";
import { grpcPackages, loadPackage } from "../../runtime/optional-package.js";
import { exitCode } from "../common/exit-codes.js";
import { sayError, sayLine } from "../output/say.js";
import { stopRequested } from "../common/stop-requested.js";

/** A clean end takes at most this long; then the process ends anyway. */
const closeMsMax = 5_000;

const logger: Logger = {
  info: (message) => void sayLine(message),
  warn: (message) => sayError(`warning: ${message}`),
  error: (message) => sayError(message),
};

/** `leasehold core`: one server, until a signal, or until it cannot go on. */
export async function core(flags: CoreFlags): Promise<number> {
  const stopped = stopRequested();
  const server = await startCore({ ...flags, logger });
  sayLine(`${server.name} (${server.id.toString(16)}) serves clients at ${server.clientUrls.join(",")}`);
  await Promise.race([stopped, server.failed]);
  await Promise.race([server.close(), sleep(closeMsMax)]);
  return exitCode("ok");
}

/** `leasehold core restore`: a data directory of a new core. */
export async function restore(file: string, flags: CoreFlags): Promise<number> {
  const { configOf, restoreBackup, restoredText } = await loadCore();
  const config = configOf(flags);
  sayLine(restoredText(await restoreBackup(file, config), config.dataDir));
  return exitCode("ok");
}

/** `leasehold core snapshot status`. */
export async function snapshotStatus(file: string, isJson: boolean): Promise<number> {
  const { readBackup } = await loadCore();
  const { head, state, hash, bytes } = await readBackup(file);
  const facts = {
    hash,
    revision: head.revision,
    keys: state.revisions.live,
    leases: state.leases.size,
    members: state.members.all.map(({ name }) => name),
    bytes,
  };
  if (isJson) sayLine(JSON.stringify(facts));
  else for (const [name, value] of Object.entries(facts)) sayLine(`${name}: ${String(value)}`);
  return exitCode("ok");
}

function loadCore(): Promise<typeof import("../../core/server/index.js")> {
  return loadPackage(grpcPackages, "leasehold core", () => import("../../core/server/index.js"));
}
