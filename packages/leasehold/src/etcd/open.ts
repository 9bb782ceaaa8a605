import { keptAlive } from "../common/keep-alive.js";
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
import { LeaseholdError } from "../lease/errors.js";
import type { Duration } from "../lease/options.js";
import type { Provider } from "../lease/provider.js";
import { grpcPackages, loadPackage } from "../runtime/optional-package.js";
import { parseCoreUrls } from "./address.js";
import { type CoreAddress, ttlMinMs } from "./terms.js";
import type { GrpcCoreClient } from "./grpc-core-client.js";
import { CoreNamedLeases, type NamedLeases } from "./named-leases.js";
import { CoreRegistry } from "./core-registry.js";
import { Keys } from "./keys.js";
import { CoreProvider } from "./provider.js";
import type { Login } from "./servers.js";
import type { CoreReport } from "./core-report.js";

const timeoutDefault = "5s";

/** What a client of a consistent core understands: `core://…`. */
export interface CoreOptions extends ParticipantOptions {
  /** Certificates, where the core's servers ask for them. */
  tls?: TlsFiles | undefined;
  /** A user of the core, where it has users. Default: the environment's `LEASEHOLD_CORE_USER`, if there is one. */
  user?: string | undefined;
  /** That user's password. Default: the environment's `LEASEHOLD_CORE_PASSWORD`. */
  password?: string | undefined;
}

const coreOptionNames: OptionNames<CoreOptions> = {
  ...participantOptionNames,
  tls: true,
  user: true,
  password: true,
};

/** How named leases are opened. */
export interface NamedLeaseOptions extends Pick<CoreOptions, "password" | "tls" | "user"> {
  /** How long to wait for answers. Default `"5s"`. */
  timeout?: Duration | undefined;
}

const namedLeaseOptionNames: OptionNames<NamedLeaseOptions> = {
  password: true,
  timeout: true,
  tls: true,
  user: true,
};

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
  const core = await connected(address, options, world);
  const holder = `${clientName(options.name)}.${incarnation()}`;
  return new CoreProvider({ core, world, address, holder, label: labelOf(options.label), drawLeaseId });
}

/** What a group on a core is opened with. */
export interface CoreGroupParts extends Pick<CoreOptions, "timeout" | "tls"> {
  readonly group: string;
  readonly ttl: Duration | undefined;
  readonly jitterMs: number;
}

/** A group as plain keys of the core at these addresses. Rejects as {@link openCoreLeases}. */
export async function openCoreRegistry(
  urls: readonly string[],
  { group, ttl, jitterMs, ...options }: CoreGroupParts,
  world: World,
): Promise<CoreRegistry> {
  const address = parseCoreUrls(urls);
  const ttlMs = ttl === undefined ? address.ttlMaxMs : parseDuration(ttl, "ttl");
  if (ttlMs < ttlMinMs || ttlMs > address.ttlMaxMs)
    throw new LeaseholdError("TTL_OUT_OF_RANGE", `the ttl of a group on a core is 1s to its ttlMax`);
  const core = await connected(address, options, world);
  const prefix = new Keys(address.keyPrefix).membersOf(group);
  return new CoreRegistry({
    core,
    world,
    prefix,
    ttlSeconds: Math.ceil(ttlMs / 1_000),
    jitterMs,
    drawLeaseId,
  });
}

/** Named leases of the core at these addresses. Rejects as {@link openCoreLeases}. */
export async function openCoreNamedLeases(
  urls: readonly string[],
  options: NamedLeaseOptions,
  world: World,
): Promise<NamedLeases> {
  const address = parseCoreUrls(urls);
  checkOpenOptions(options, namedLeaseOptionNames, "core://: named leases");
  const timeoutMs = parseDuration(options.timeout ?? timeoutDefault, "timeout");
  const core = await keptAlive(world.keepAlive, () => connected(address, options, world));
  return new CoreNamedLeases(core, world, timeoutMs, drawLeaseId);
}

/** The core, when one of its servers has answered. */
async function connected(
  address: CoreAddress,
  options: Pick<CoreOptions, "password" | "timeout" | "tls" | "user">,
  world: World,
): Promise<GrpcCoreClient> {
  const timeoutMs = parseDuration(options.timeout ?? timeoutDefault, "timeout");
  const tls = await textsOf(options.tls);
  const load = () =>
    Promise.all([import("./grpc-core-client.js"), import("./connection/grpc-connection.js")]);
  const [loaded, { grpcConnections }] = await loadPackage(grpcPackages, "core://", load);
  const access = { connect: grpcConnections(tls), login: loginOf(options) };
  const core = new loaded.GrpcCoreClient(address.endpoints, access, world);
  try {
    await core.connect({ timeoutMs });
  } catch (error) {
    core.close();
    throw error;
  }
  return core;
}

/** How every server of the core at these addresses is. Rejects as {@link openCoreLeases}. */
export async function coreReport(
  urls: readonly string[],
  options: Pick<CoreOptions, "timeout" | "tls">,
  world: World,
): Promise<CoreReport> {
  const { endpoints } = parseCoreUrls(urls);
  const timeoutMs = parseDuration(options.timeout ?? timeoutDefault, "timeout");
  const tls = await textsOf(options.tls);
  const load = () => import("./server-reports.js");
  const { serverReports } = await loadPackage(grpcPackages, "core://", load);
  // Nothing else does while a server that is away is tried again.
  return keptAlive(world.keepAlive, () => serverReports(endpoints, tls, timeoutMs, world));
}

/** An address has no place for a password: lists of processes show it. */
function loginOf(options: Pick<CoreOptions, "password" | "user">): Login | undefined {
  const { LEASEHOLD_CORE_USER: envName, LEASEHOLD_CORE_PASSWORD: envPassword } = process.env;
  const name = options.user ?? envName;
  if (name === undefined || name === "") {
    if (options.password === undefined) return undefined;
    throw new LeaseholdError("INVALID_CONFIG", "password is given, and user is not");
  }
  const password = options.password ?? envPassword;
  if (password === undefined)
    throw new LeaseholdError("INVALID_CONFIG", `the password of ${JSON.stringify(name)} is missing`);
  return { name, password };
}

async function textsOf(files: TlsFiles | undefined) {
  if (files === undefined) return undefined;
  const [ca, cert, key] = await Promise.all([textOf(files.ca), textOf(files.cert), textOf(files.key)]);
  return { ca, cert, key };
}

/** Random, so that nobody else has the same: 1 to 2^63 - 1. */
function drawLeaseId(): bigint {
  return randomBytes(8).readBigUInt64BE() >> 1n || 1n;
}
