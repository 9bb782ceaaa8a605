import { keptAlive } from "../common/keep-alive.js";
import { clientName, labelOf } from "../runtime/participant.js";
import { randomBytes } from "node:crypto";
import { createSecureContext } from "node:tls";
import { isPem, textOf } from "../runtime/pem.js";
import { type Logger, silent } from "../runtime/logger.js";
import { FileWatch, watchMs } from "../runtime/security/file-watch.js";
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

/** Options of a client of a consistent core: `core://…`. */
export interface CoreOptions extends ParticipantOptions {
  /** Certificates, if the core's servers require them. */
  tls?: TlsFiles | undefined;
  /** A user of the core, if the core has users. Default: the environment's `LEASEHOLD_CORE_USER`, if set. */
  user?: string | undefined;
  /** The user's password. Default: the environment's `LEASEHOLD_CORE_PASSWORD`. */
  password?: string | undefined;
}

const coreOptionNames: OptionNames<CoreOptions> = {
  ...participantOptionNames,
  tls: true,
  user: true,
  password: true,
};

/** Options of named leases. */
export interface NamedLeaseOptions extends Pick<CoreOptions, "password" | "tls" | "user"> {
  /** How long to wait for an answer. Default `"5s"`. */
  timeout?: Duration | undefined;
}

const namedLeaseOptionNames: OptionNames<NamedLeaseOptions> = {
  password: true,
  timeout: true,
  tls: true,
  user: true,
};

/**
 * Opens leases on the consistent core at these addresses. Resolves when one of its servers answers.
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
  checkOpenOptions(options, coreOptionNames, "core://: a core has no members");
  const core = await connected(address, options, world);
  const holder = `${clientName(options.name)}.${incarnation()}`;
  return new CoreProvider({ core, world, address, holder, label: labelOf(options.label), drawLeaseId });
}

/** Options of a group on a core. */
export interface CoreGroupParts extends Pick<CoreOptions, "timeout" | "tls"> {
  readonly group: string;
  readonly ttl: Duration | undefined;
  readonly jitterMs: number;
}

/** Opens a group as plain keys of the core at these addresses. Rejects like {@link openCoreLeases}. */
export async function openCoreRegistry(
  urls: readonly string[],
  { group, ttl, jitterMs, ...options }: CoreGroupParts,
  world: World,
): Promise<CoreRegistry> {
  const address = parseCoreUrls(urls);
  const ttlMs = ttl === undefined ? address.ttlMaxMs : parseDuration(ttl, "ttl");
  if (ttlMs < ttlMinMs || ttlMs > address.ttlMaxMs)
    throw new LeaseholdError("TTL_OUT_OF_RANGE", `the ttl of a group on a core must be 1s to its ttlMax`);
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

/** Opens the named leases of the core at these addresses. Rejects like {@link openCoreLeases}. */
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

/** Connects to the core; resolves when one of its servers answers. */
async function connected(
  address: CoreAddress,
  options: Pick<CoreOptions, "logger" | "password" | "timeout" | "tls" | "user">,
  world: World,
): Promise<GrpcCoreClient> {
  const timeoutMs = parseDuration(options.timeout ?? timeoutDefault, "timeout");
  const load = () =>
    Promise.all([import("./grpc-core-client.js"), import("./connection/grpc-connection.js")]);
  const [loaded, { grpcConnections }] = await loadPackage(grpcPackages, "core://", load);
  const login = loginOf(options);
  const tls = options.tls && (await watched(options.tls, options.logger ?? silent, world));
  const access = { connect: grpcConnections(tls), login, closed: () => tls?.close() };
  const core = new loaded.GrpcCoreClient(address.endpoints, access, world);
  try {
    await core.connect({ timeoutMs });
  } catch (error) {
    core.close();
    throw error;
  }
  return core;
}

/** Reports the state of every server of the core at these addresses. Rejects like {@link openCoreLeases}. */
export async function coreReport(
  urls: readonly string[],
  options: Pick<CoreOptions, "timeout" | "tls">,
  world: World,
): Promise<CoreReport> {
  const { endpoints } = parseCoreUrls(urls);
  const timeoutMs = parseDuration(options.timeout ?? timeoutDefault, "timeout");
  const tls = options.tls && { current: await textsOf(options.tls), version: 0 };
  const load = () => import("./server-reports.js");
  const { serverReports } = await loadPackage(grpcPackages, "core://", load);
  // Nothing else keeps the process alive while a missing server is retried.
  return keptAlive(world.keepAlive, () => serverReports(endpoints, tls, timeoutMs, world));
}

/** Addresses contain no password, as process lists would show it. */
function loginOf(options: Pick<CoreOptions, "password" | "user">): Login | undefined {
  const { LEASEHOLD_CORE_USER: envName, LEASEHOLD_CORE_PASSWORD: envPassword } = process.env;
  const name = options.user ?? envName;
  if (name === undefined || name === "") {
    if (options.password === undefined) return undefined;
    throw new LeaseholdError("INVALID_CONFIG", "password is given without user");
  }
  const password = options.password ?? envPassword;
  if (password === undefined)
    throw new LeaseholdError("INVALID_CONFIG", `the password of ${JSON.stringify(name)} is missing`);
  return { name, password };
}

/** Reads certificates and a key that match. */
async function textsOf(files: TlsFiles) {
  const [ca, cert, key] = await Promise.all([textOf(files.ca), textOf(files.cert), textOf(files.key)]);
  try {
    createSecureContext({ ca, cert, key });
  } catch (cause) {
    const why = `the certificates or their key cannot be used: ${(cause as Error).message}`;
    throw new LeaseholdError("INVALID_CONFIG", why, { cause });
  }
  return { ca, cert, key };
}

/** Certificates that are reread within seconds of a change. New connections use the new ones. */
function watched(files: TlsFiles, logger: Logger, world: World) {
  const paths = [files.ca, files.cert, files.key].filter((each) => !isPem(each));
  return FileWatch.start({ paths, read: () => textsOf(files), world, logger, everyMs: watchMs });
}

/** Draws a random id, 1 to 2^63 - 1. */
function drawLeaseId(): bigint {
  return randomBytes(8).readBigUInt64BE() >> 1n || 1n;
}
