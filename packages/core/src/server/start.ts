import type { Logger } from "leasehold/runtime";
import { SignedTokens } from "./auth/signed-tokens.js";
import type { CoreConfig } from "./config/config.js";
import type { RunningCore } from "./config/flags.js";
import { idText } from "./config/identity.js";
import { openDataDirectory } from "./disk/data-directory.js";
import { eventLog } from "./log-events.js";
import { keepSelfMade } from "./disk/self-made.js";
import { join } from "./peers/join.js";
import { Server } from "./server.js";
import { checkCertificate } from "./wire/tls/check-certificate.js";
import { isOpenToClients, readTls, revokedNow } from "./wire/tls/tls.js";

/**
 * Starts a server of the core. Resolves when it listens, with or without a leader.
 *
 * @throws LeaseholdError `INVALID_CONFIG`, `DATA_IN_USE`, `LOG_CORRUPT`, `VERSION_MISMATCH`, `DISK_FAILED`
 */
export async function startCore(config: CoreConfig, logger: Logger): Promise<RunningCore> {
  for (const tls of [config.clientTls, config.peerTls])
    if (tls !== undefined && tls.selfMadeFor === undefined) checkCertificate(tls);
  const signed = config.tokens.kind === "jwt" ? await SignedTokens.open(config.tokens) : undefined;
  const directory = await openDataDirectory(config, join);
  warnAtStart(config, directory.tornBytes, logger);
  signed?.bindTo(idText(directory.record.cluster));
  const core = new Server(config, directory, logger, signed);
  try {
    for (const tls of [config.clientTls, config.peerTls]) await keepSelfMade(tls);
    await core.open();
  } catch (error) {
    await core.close();
    throw error;
  }
  return core;
}

/** Warns of settings that are allowed, but that an operator should know about. */
function warnAtStart(config: CoreConfig, tornBytes: number, logger: Logger): void {
  const events = eventLog(logger);
  if (tornBytes > 0)
    events.log(
      "journal-torn",
      `${tornBytes} bytes of a write that a crash had cut off were removed from the journal`,
      { bytes: tornBytes },
    );
  if (config.forceNewCluster)
    events.log(
      "cluster-forced",
      "--force-new-cluster: this server is the only one of a new core now; what only the others had is lost. " +
        "Start it without that option from now on, and add servers with empty directories",
      {},
    );
  if (config.peerTls?.selfMadeFor !== undefined)
    events.log(
      "tls-unverified",
      "--peer-auto-tls: servers talk encrypted, and verify nobody: keep others away from that port",
      {},
    );
  if (isOpenToClients(config.clientTls, config.peerTls))
    events.log(
      "tls-same-authority",
      "--trusted-ca-file and --peer-trusted-ca-file are the same authority: with a client's certificate one can speak " +
        "as a server. Give servers one of their own, or --peer-cert-allowed-cn",
      {},
    );
  for (const tls of [config.clientTls, config.peerTls]) {
    if (tls?.crlFile === undefined) continue;
    const { crlFile: file } = tls;
    const text = `the list of revoked certificates ${file} is out of date, and stays in use`;
    if (revokedNow(tls, readTls(tls).ca)!.nextUpdateMs < Date.now())
      events.log("tls-crl-outdated", text, { file });
  }
}
