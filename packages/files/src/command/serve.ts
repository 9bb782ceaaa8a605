import { setTimeout as sleep } from "node:timers/promises";
import { few, parseDuration } from "leasehold/common";
import { type Leases, type Member, open, startMember } from "leasehold";
import { openBlockDirectory } from "../disk/directory-store.js";
import { startFiles } from "../node/start.js";
import { serveS3 } from "../s3/server.js";
import { filesCatalogue } from "../metrics/catalogue.js";
import { FilesMetrics } from "../metrics/files-metrics.js";
import { openUsers } from "../users/users.js";
import { serveWebdav } from "../webdav/server.js";
import { eventLog } from "../logs/log-events.js";
import {
  exitCode,
  usageError,
  securityOf,
  type LogFlags,
  requestedLogger,
  serverLogger,
  notifyParent,
  serveMetrics,
  notifySystemd,
  stopRequested,
  toJson,
  printLine,
} from "leasehold/cli";
import { type DiskFault, type NodeCheck, nodeChecks } from "./node-checks.js";
import { localFilesPort } from "./nodes.js";
import type { FilesOptions } from "./settings.js";

export interface ServeOptions extends FilesOptions, LogFlags {
  readonly id?: string;
  readonly dir?: string;
  readonly node?: readonly string[];
  readonly member?: readonly string[];
  readonly join?: boolean;
  readonly rebalanceRate?: string;
  readonly http?: string;
  readonly s3?: string;
  readonly httpCert?: string;
  readonly httpKey?: string;
  readonly user?: string;
  readonly users?: string;
  readonly blockSize?: string;
  readonly ttlMax?: string;
  readonly maxClockSkew?: string;
  readonly metricsAddress?: string;
}

/** Messages of a forked node to its parent. */
export interface ServeNews {
  readonly type: "serving";
  readonly id: string;
  readonly url: string;
  /** The address of the S3 API, if it is served. */
  readonly s3?: string;
}

/** Time limit of each part of a clean shutdown, ms. */
const closeMsMax = 5_000;
/** Time from a signal until the process exits, whatever is still open. */
const stopMsMax = 10_000;

/** `leasehold files serve`: one node, which is a member of the cluster of its leases, until a signal. */
export async function serve(options: ServeOptions): Promise<number> {
  const stopped = stopRequested();
  const late = stopped.then(() => sleep(stopMsMax)).then(() => exitCode("ok"));
  return Promise.race([serveUntil(stopped, options), late]);
}

async function serveUntil(stopped: Promise<void>, options: ServeOptions): Promise<number> {
  const { id, dir } = options;
  if (options.user !== undefined && options.users !== undefined)
    throw usageError("--user (LEASEHOLD_FILES_USER) and --users exclude each other");
  // A signature is checked with the password, of which that file has only a hash.
  if (options.s3 !== undefined && options.users !== undefined)
    throw usageError("--s3 needs the one user of --user (LEASEHOLD_FILES_USER), and not --users");
  if (id === undefined || dir === undefined) throw usageError("a node needs --id and --dir");
  const [nodes, members] = [listOf(options.node, "--node"), listOf(options.member, "--member")];
  const security = securityOf(options);
  // A node that was added need not be a member of the cluster of the leases.
  if (!Object.hasOwn(members, id)) return serveBesideMembers(id, dir, nodes, members, options, stopped);
  const member = await startMember({
    id,
    members,
    ...(options.cluster !== undefined && { cluster: options.cluster }),
    ...(options.ttlMax !== undefined && { ttlMax: parseDuration(options.ttlMax, "--ttl-max") }),
    ...(options.maxClockSkew !== undefined && {
      maxClockSkew: parseDuration(options.maxClockSkew, "--max-clock-skew"),
    }),
    ...security,
    logger: serverLogger(options),
  });
  try {
    return await serveObserved(id, dir, nodes, member, options, stopped);
  } finally {
    await Promise.race([member.close(), sleep(closeMsMax)]);
  }
}

async function serveBesideMembers(
  id: string,
  dir: string,
  nodes: Readonly<Record<string, string>>,
  members: Readonly<Record<string, string>>,
  options: ServeOptions,
  stopped: Promise<void>,
): Promise<number> {
  const urls = Object.values(members).map((address) => `flease://${address}` as const);
  const leases = await open(...few(urls), {
    name: `files-${id}`,
    ...(options.cluster !== undefined && { cluster: options.cluster }),
    ...securityOf(options),
    logger: serverLogger(options),
  });
  try {
    return await serveObserved(id, dir, nodes, { leases }, options, stopped);
  } finally {
    await Promise.race([leases.close(), sleep(closeMsMax)]);
  }
}

/** The checks of `/readyz`, which change when the node has started. */
interface NodeHealth {
  checks: () => readonly NodeCheck[];
}

async function serveObserved(
  id: string,
  directory: string,
  nodes: Readonly<Record<string, string>>,
  participant: Member | { readonly leases: Leases },
  options: ServeOptions,
  stopped: Promise<void>,
): Promise<number> {
  let metrics: FilesMetrics | undefined;
  const starting = { name: "disk", isPassed: false, detail: "it is being opened" };
  const health: NodeHealth = { checks: () => [starting] };
  const served = await serveMetrics(
    options.metricsAddress,
    (all) => {
      all.observe(participant.leases);
      all.observeHealth(() => health.checks());
      if ("status" in participant) all.observeMember(participant);
      metrics = new FilesMetrics(all.define(filesCatalogue));
    },
    requestedLogger(options),
  );
  try {
    return await serveFiles(id, directory, nodes, participant.leases, metrics, health, options, stopped);
  } finally {
    await served?.close();
  }
}

async function serveFiles(
  id: string,
  directory: string,
  nodes: Readonly<Record<string, string>>,
  leases: Leases,
  metrics: FilesMetrics | undefined,
  health: NodeHealth,
  options: ServeOptions,
  stopped: Promise<void>,
): Promise<number> {
  const logger = serverLogger(options);
  const events = eventLog(logger);
  const fault: { last?: DiskFault } = {};
  const blockSize = options.blockSize === undefined ? undefined : Number(options.blockSize);
  const store = await openBlockDirectory(directory, {
    synced: metrics && ((ms) => metrics.synced(ms)),
    failed: ({ message: error }) => {
      fault.last = { atMs: performance.now(), error };
      events.limited("disk-failed", error, error, { error });
    },
  });
  const stops: (() => Promise<void>)[] = [() => store.close()];
  try {
    const { cluster } = options;
    const security = securityOf(options);
    const files = await startFiles({
      node: id,
      nodes,
      joins: options.join,
      leases,
      store,
      blockSize,
      rebalanceRate: options.rebalanceRate === undefined ? undefined : Number(options.rebalanceRate),
      cluster,
      ...security,
      logger,
    });
    stops.unshift(() => files.close());
    metrics?.watch(files, directory);
    health.checks = () => nodeChecks(files.status(), fault.last, performance.now());
    const complain = (error: string): void => events.limited("server-fault", error, error, { error });
    const users = options.users === undefined ? undefined : await openUsers(options.users, { logger });
    if (users !== undefined) stops.push(async () => users.close());
    const { user: credentials } = options;
    const common = { credentials, tls: certificateOf(options), fault: complain, logger, observer: metrics };
    const at = addressIn(options.http ?? `127.0.0.1:${localFilesPort}`);
    const front = await serveWebdav(files, leases, { ...common, ...at, users });
    stops.unshift(() => front.close());
    const s3 =
      options.s3 === undefined ? undefined : await serveS3(files, { ...common, ...addressIn(options.s3) });
    if (s3 !== undefined) stops.unshift(() => s3.close());
    const urls = { url: front.url, ...(s3 && { s3: s3.url }) };
    events.log("node-serving", `${id} serves ${urls.url}`, { node: id, url: urls.url, s3: urls.s3 });
    announce(options, { type: "serving", id, ...urls });
    const systemd = notifySystemd({ checks: health.checks });
    await stopped;
    events.log("node-stopping", `${id} was told to stop`, { node: id });
    systemd.stopping();
  } finally {
    // The HTTP server stops first, so that requests in flight can end.
    for (const stop of stops) await Promise.race([stop(), sleep(closeMsMax)]);
  }
  return exitCode("ok");
}

function announce({ output = "table" }: ServeOptions, news: ServeNews): void {
  const { id, url, s3 } = news;
  notifyParent(news);
  const text = `${id} serves ${url}${s3 === undefined ? "" : ` and S3 ${s3}`}`;
  printLine(output === "table" ? text : toJson(news));
}

function addressIn(text: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(`http://${text}`);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) };
}

/** `a=host:port`, once for each. */
function listOf(given: readonly string[] | undefined, option: string): Record<string, string> {
  const entries = (given ?? []).map((text) => {
    const at = text.indexOf("=");
    if (at < 1) throw usageError(`${option} is ID=HOST:PORT, not ${JSON.stringify(text)}`);
    return [text.slice(0, at), text.slice(at + 1)] as const;
  });
  if (entries.length === 0) throw usageError(`${option} is missing: give it once for each node`);
  return Object.fromEntries(entries);
}

/** The certificate for clients of WebDAV: one for them, or the one that the node has for members. */
function certificateOf({ httpCert, httpKey, tlsCert, tlsKey }: ServeOptions) {
  if ((httpCert === undefined) !== (httpKey === undefined))
    throw usageError("--http-cert and --http-key are needed together");
  if (httpCert !== undefined && httpKey !== undefined) return { cert: httpCert, key: httpKey };
  return tlsCert === undefined || tlsKey === undefined ? undefined : { cert: tlsCert, key: tlsKey };
}
