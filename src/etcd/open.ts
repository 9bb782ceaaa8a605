import { clientName, labelOf } from "../runtime/participant.js";
import { randomBytes } from "node:crypto";
import { textOf } from "../runtime/pem.js";
import {
  checkOpenOptions,
  type ParticipantOptions,
  participantOptionNames,
  type TlsFiles,
} from "../runtime/options.js";
import { incarnation } from "../runtime/world.js";
import { parseDuration } from "../lease/duration.js";
import type { World } from "../common/ports.js";
import type { OptionNames } from "../lease/option-names.js";
import type { Provider } from "../lease/provider.js";
import { grpcPackages, loadPackage } from "../runtime/optional-package.js";
import { parseCoreUrls } from "./address.js";
import { CoreProvider } from "./provider.js";

const timeoutDefault = "5s";

/** What a client of a consistent core understands: `core://…`. */
export interface CoreOptions extends ParticipantOptions {
  /** Certificates, where the core's servers ask for them. */
  tls?: TlsFiles | undefined;
}

const coreOptionNames: OptionNames<CoreOptions> = { ...participantOptionNames, tls: true };

/**
 * Opens leases of the consistent core at these addresses. Resolves when one of its servers answers.
 *
 * Rejects with a `LeaseholdError`: `INVALID_URL`, `INVALID_DURATION`, `INVALID_CONFIG`, `UNSUPPORTED`,
 * `UNREACHABLE`, `NO_QUORUM`, `UNAUTHENTICATED`, `PERMISSION_DENIED`.
 */
export async function openCoreLeases(
  urls: readonly string[],
  options: CoreOptions,
  world: World,
): Promise<Provider> {
  const address = parseCoreUrls(urls);
  checkOpenOptions(options, coreOptionNames, "core://: a core has no members to talk to");
  const timeoutMs = parseDuration(options.timeout ?? timeoutDefault, "timeout");
  const tls = options.tls === undefined ? undefined : await textsOf(options.tls);
  const load = () => import("./grpc-core-client.js");
  const { GrpcCoreClient } = await loadPackage(grpcPackages, "core://", load);
  const core = new GrpcCoreClient(address.endpoints, tls, world);
  try {
    await core.connect({ timeoutMs });
  } catch (error) {
    core.close();
    throw error;
  }
  const holder = `${clientName(options.name)}.${incarnation()}`;
  return new CoreProvider({ core, world, address, holder, label: labelOf(options.label), drawLeaseId });
}

async function textsOf({ ca, cert, key }: TlsFiles) {
  const [caText, certText, keyText] = await Promise.all([textOf(ca), textOf(cert), textOf(key)]);
  return { ca: caText, cert: certText, key: keyText };
}

/** Random, so that nobody else has the same: 1 to 2^63 - 1. */
function drawLeaseId(): bigint {
  return randomBytes(8).readBigUInt64BE() >> 1n || 1n;
}
