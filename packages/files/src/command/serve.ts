import { setTimeout as sleep } from "node:timers/promises";
import { few } from "leasehold/common";
import { type Leases, type Member, open, startMember } from "leasehold";
import { openBlockDirectory } from "../disk/directory-store.js";
import { rebalanceRateDefault, startFiles } from "../node/start.js";
import { serveS3 } from "../s3/server.js";
import { filesCatalogue } from "../metrics/catalogue.js";
import { FilesMetrics } from "../metrics/files-metrics.js";
import { openUsers } from "../users/users.js";
import { serveWebdav } from "../webdav/server.js";
import type { Logger } from "leasehold/runtime";
import { eventLog } from "../logs/log-events.js";
import {
  exitCode,
  reloadSettings,
  securityOf,
  requestedLogger,
  serverLogger,
  notifyParent,
  serveMetrics,
  notifySystemd,
  type ServiceManager,
  stopRequested,
  toJson,
  printLine,
} from "leasehold/cli";
import { type DiskFault, type NodeCheck, nodeChecks } from "./node-checks.js";
import { localFilesPort } from "./nodes.js";
import { type ServeOptions, type ServeSettings, certificateOf, serveSettingsOf } from "./serve-settings.js";

/** Messages of a forked node to its parent. */
export interface ServeNews {
  readonly type: "serving";
  readonly id: string;
  readonly url: string;
  /** The address of the S3 API, if it is enabled. */
  readonly s3?: string;
}

/** Time limit of each part of a clean shutdown, ms. */
const closeMsMax = 5_000;
/** The time from a signal until the process exits, whatever is still open. */
const stopMsMax = 10_000;

/** `leasehold files serve`: runs one node, which is a member of its leases' cluster, until a signal. */
export async function serve(options: ServeOptions): Promise<number> {
  let { rebalanceRate } = options;
  let node: ServedNode | undefined;
  const logger = serverLogger(options);
  const stopped = stopRequested(() => {
    const takes = { "files.rebalanceRate": (rate: unknown) => void (rebalanceRate = Number(rate)) };
    void reloadSettings({ logger, manager: node?.systemd, takes });
  });
  const settings = serveSettingsOf(options);
  node = { settings, options, stopped, logger, rate: () => rebalanceRate ?? rebalanceRateDefault };
  const late = stopped.then(() => sleep(stopMsMax)).then(() => exitCode("ok"));
  return Promise.race([serveNode(node), late]);
}

async function serveNode(node: ServedNode): Promise<number> {
  const { settings } = node;
  // An added node need not be a member of the leases' cluster.
  if (!Object.hasOwn(settings.members, settings.id)) return serveBesideMembers(node);
  const member = await startMember({ ...settings.memberOptions, logger: node.logger });
  try {
    return await serveObserved(node, member);
  } finally {
    await Promise.race([member.close(), sleep(closeMsMax)]);
  }
}

interface ServedNode {
  readonly settings: ServeSettings;
  readonly options: ServeOptions;
  readonly stopped: Promise<void>;
  readonly rate: () => number;
  readonly logger: Logger;
  /** Set once the node serves. */
  systemd?: ServiceManager;
}

async function serveBesideMembers(node: ServedNode): Promise<number> {
  const { id, members } = node.settings;
  const { options } = node;
  const urls = Object.values(members).map((address) => `flease://${address}` as const);
  const leases = await open(...few(urls), {
    name: `files-${id}`,
    ...(options.cluster !== undefined && { cluster: options.cluster }),
    ...securityOf(options),
    logger: node.logger,
  });
  try {
    return await serveObserved(node, { leases });
  } finally {
    await Promise.race([leases.close(), sleep(closeMsMax)]);
  }
}

/** The checks of `/readyz`. They change once the node has started. */
interface NodeHealth {
  checks: () => readonly NodeCheck[];
}

async function serveObserved(
  node: ServedNode,
  participant: Member | { readonly leases: Leases },
): Promise<number> {
  let metrics: FilesMetrics | undefined;
  const starting = { name: "disk", isPassed: false, detail: "it is being opened" };
  const health: NodeHealth = { checks: () => [starting] };
  const served = await serveMetrics(
    node.options.metricsAddress,
    (all) => {
      all.observe(participant.leases);
      all.observeHealth(() => health.checks());
      if ("status" in participant) all.observeMember(participant);
      metrics = new FilesMetrics(all.define(filesCatalogue));
    },
    requestedLogger(node.options),
  );
  try {
    return await serveFiles(node, participant.leases, metrics, health);
  } finally {
    await served?.close();
  }
}

async function serveFiles(
  node: ServedNode,
  leases: Leases,
  metrics: FilesMetrics | undefined,
  health: NodeHealth,
): Promise<number> {
  const { settings, options, stopped, rate, logger } = node;
  const { id, dir, nodes, credentials } = settings;
  const events = eventLog(logger);
  const fault: { last?: DiskFault } = {};
  const store = await openBlockDirectory(dir, {
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
      blockSize: options.blockSize,
      rebalanceRate: rate,
      cluster,
      ...security,
      logger,
    });
    stops.unshift(() => files.close());
    metrics?.watch(files, dir);
    health.checks = () => nodeChecks(files.status(), fault.last, performance.now(), store.oldestWait);
    const complain = (error: string): void => events.limited("server-fault", error, error, { error });
    const users = options.users === undefined ? undefined : await openUsers(options.users, { logger });
    if (users !== undefined) stops.push(async () => users.close());
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
    node.systemd = notifySystemd({ checks: health.checks });
    await stopped;
    events.log("node-stopping", `${id} was told to stop`, { node: id });
    node.systemd.stopping();
  } finally {
    // The HTTP server stops first, so that requests in flight can finish.
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
