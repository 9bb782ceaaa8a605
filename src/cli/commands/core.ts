import { setTimeout as sleep } from "node:timers/promises";
import type { CoreFlags } from "../../core/server/config.js";
import type { Logger } from "../../runtime/logger.js";
import { loadPackage } from "../../runtime/optional-package.js";
import { exitCode } from "../common/exit-codes.js";
import { sayError, sayLine } from "../output/say.js";
import { stopRequested } from "../common/stop-requested.js";

/** A clean end takes at most this long; whoever stops a server expects it to stop. */
const closeMsMax = 5_000;

const logger: Logger = {
  info: (message) => void sayLine(message),
  warn: (message) => sayError(`warning: ${message}`),
  error: (message) => sayError(message),
};

/** `leasehold core`: one server, until a signal, or until it cannot go on. */
export async function core(flags: CoreFlags): Promise<number> {
  const stopped = stopRequested();
  const { configOf, startCore } = await loadPackage(
    "@grpc/grpc-js (and @bufbuild/protobuf)",
    "leasehold core",
    () => import("../../core/server/index.js"),
  );
  const config = configOf(flags);
  const server = await startCore(config, logger);
  const urls = config.advertiseClientUrls.join(",");
  sayLine(`${server.name} (${server.id.toString(16)}) serves clients at ${urls}`);
  await Promise.race([stopped, server.failed]);
  await Promise.race([server.close(), sleep(closeMsMax)]);
  return exitCode("ok");
}
