import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join as joinPath } from "node:path";
import { LeaseholdError } from "leasehold/common";
import { invalid } from "./common/invalid.js";
import { LogLimit, type Logger } from "leasehold/runtime";
import { CoreHost } from "../host/host.js";
import { checksumOf } from "../journal/checksum.js";
import type { InstallSnapshot } from "../raft/types.js";
import { defaultLimits } from "../replica/options.js";
import type { Roll } from "../replica/roll.js";
import { Replica } from "../replica/replica.js";
import type { Effects, PeerMessage } from "../replica/types.js";
import type { CoreMember } from "../state/members.js";
import type { CoreState } from "../state/state.js";
import { SignedTokens } from "./auth/signed-tokens.js";
import type { RunningCore } from "./common/api.js";
import type { CoreConfig, TlsFiles } from "./common/config.js";
import { type DataDirectory, openDataDirectory } from "./disk/data-directory.js";
import { Disk } from "./disk/disk.js";
import { keepSelfMade } from "./disk/self-made.js";
import { Connections } from "./front/connections.js";
import { DiskIndex } from "./disk/disk-index.js";
import { Counters } from "./common/counters.js";
import { Copies } from "./copies.js";
import { type Measured, metricsText } from "./http/metrics.js";
import { clientHttp, metricsHttp } from "./http/server.js";
import { type Beside, GrpcEdge } from "./grpc/edge.js";
import type { ClusterFacts } from "./grpc/header.js";
import { foundingMember, idText } from "./common/identity.js";
import { DiagnosisHandlers } from "./own/diagnosis.js";
import { ownServices } from "./own/services.js";
import { join } from "./peers/join.js";
import { nodePorts } from "./node-ports.js";
import { isUsualAtStart, Peers, type PeersHandler } from "./peers/peers.js";
import { isOpenToClients, readTls, readTlsFile, revokedNow } from "./common/tls.js";

/** What is asked for at once, and what is, have room in memory beside each other. */
const answersPerQuota = 4;

/** As etcd: between the moment at which a server finds that it was removed, and its end. */
const leaveMs = 1_000;

/** Where metrics are served alone: for a few that look on. */
const metricsConnectionsMax = 64;

/** Servers start one after the other: until then it is no news that one is not there, or does not know another. */
const startingMs = 5_000;

/** How often a server looks whether its data directory is still its own. */
const lockCheckMs = 5_000;

/** A peer that stands still for less keeps its connections, and what is on them. */
const silenceMsMin = 5_000;

/** Leadership is handed over before a server stops; longer than this nobody waits for it. */
const transferMsMax = 1_000;
const transferLookMs = 10;

/**
 * Starts a server of the core: resolves when it listens. Whether there is a leader is another matter.
 *
 * @throws LeaseholdError `INVALID_CONFIG`, `DATA_IN_USE`, `LOG_CORRUPT`, `VERSION_MISMATCH`, `DISK_FAILED`
 */
export async function startCore(config: CoreConfig, logger: Logger): Promise<RunningCore> {
  for (const tls of [config.clientTls, config.peerTls])
    if (tls?.selfMadeFor === undefined) checkCertificate(tls);
  const signed = config.tokens.kind === "jwt" ? await SignedTokens.open(config.tokens) : undefined;
  const directory = await openDataDirectory(config, join);
  if (directory.tornBytes > 0)
    logger.warn(
      `${directory.tornBytes} bytes of a write that a crash had cut off were removed from the journal`,
    );
  if (config.forceNewCluster)
    logger.warn(
      "--force-new-cluster: this server is the only one of a new core now; what only the others had is lost. " +
        "Start it without that option from now on, and add servers with empty directories",
    );
  if (config.peerTls?.selfMadeFor !== undefined)
    logger.warn(
      "--peer-auto-tls: servers talk encrypted, and verify nobody: keep others away from that port",
    );
  if (isOpenToClients(config.clientTls, config.peerTls))
    logger.warn(
      "--trusted-ca-file and --peer-trusted-ca-file are the same authority: with a client's certificate one can speak " +
        "as a server. Give servers one of their own, or --peer-cert-allowed-cn",
    );
  for (const tls of [config.clientTls, config.peerTls]) {
    if (tls?.crlFile === undefined) continue;
    if (revokedNow(tls, readTls(tls).ca)!.nextUpdateMs < Date.now())
      logger.warn(
        `the list of certificates that were taken back, ${tls.crlFile}, is out of date: it goes on counting`,
      );
  }
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

class Server implements RunningCore {
  readonly name: string;
  readonly id: bigint;
  readonly cluster: bigint;
  readonly clientUrls: readonly string[];
  readonly failed: Promise<never>;
  readonly #config: CoreConfig;
  /** Not what was found there: the state and the log become others, and these would stay in memory. */
  readonly #directory: Pick<DataDirectory, "journal" | "lock" | "path" | "record">;
  readonly #logger: Logger;
  readonly #limit = new LogLimit();
  readonly #disks: DiskIndex;
  readonly #counters = new Counters();
  readonly #host: CoreHost;
  readonly #copies: Copies;
  readonly #peers: Peers;
  readonly #edge: GrpcEdge;
  readonly #watching: NodeJS.Timeout;
  /** As last told; 0 for none. */
  #leader = 0n;
  readonly #startingEndMs = performance.now() + startingMs;
  #fail: (error: unknown) => void = () => undefined;
  #leaving: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;

  constructor(config: CoreConfig, directory: DataDirectory, logger: Logger, signed?: SignedTokens) {
    const { journal, lock, path, record, recovered, snapshots, state } = directory;
    const { id, cluster, disk, members } = record;
    const { name, advertiseClientUrls: clientUrls } = config;
    this.name = name;
    this.id = id;
    this.cluster = cluster;
    this.clientUrls = clientUrls;
    this.#config = config;
    this.#directory = { journal, lock, path, record };
    this.#disks = new DiskIndex(path, record);
    this.#logger = logger;
    this.failed = new Promise((_, reject) => (this.#fail = reject));
    // A program that does not await it must not end by an unhandled rejection.
    this.failed.catch(() => undefined);
    const { electionTicks, heartbeatMs: tickMs } = config;
    const electionMs = electionTicks * tickMs;
    const founding = members.map(foundingMember);
    const answerBytesMax = Math.min(defaultLimits.answerBytesMax, config.quotaBytes / answersPerQuota);
    this.#host = new CoreHost({
      ...nodePorts(new Disk(journal, snapshots, recovered.snapshot.index), this.#synced),
      logic: new Replica({
        id,
        cluster,
        recovered,
        state,
        random: { next: () => Math.random() },
        checksum: checksumOf,
        corruptCheckMs: config.corruptCheckMs,
        tickMs,
        electionTicks,
        autoCompaction: config.autoCompaction,
        quotaBytes: config.quotaBytes,
        founding,
        self: { name, clientUrls, disk },
        limits: { ...limitsOf(config), answerBytesMax },
      }),
      tickMs,
      send: (message) => this.#peers.send(message),
      failed: (error) => this.#fail(error),
      trouble: (text) => this.#trouble("host", text),
      leadership: (leadership) => this.#tellLeadership(leadership),
      roll: (roll) => this.#rollChanged(roll),
      compared: (comparison) => this.#copies.take(comparison),
    });
    this.#copies = this.#copiesWithin(electionMs);
    this.#peers = new Peers({
      self: { cluster, id, name, disk },
      roll: rollOf(state, founding),
      initialUrls: otherUrlsOf(config),
      tls: config.peerTls,
      silenceMs: Math.max(silenceMsMin, electionMs),
      snapshots,
      counters: this.#counters,
      handler: this.#peersHandler(),
    });
    const facts = { cluster, id, diskBytes: () => bytesBelow(path) };
    const admission = { signed, byCertificate: config.clientTls?.clientCertAuth === true };
    const connections = this.#connections();
    const { maxConcurrentStreams, requestBytesMax } = config;
    const metrics = () => metricsText(this.#measured(facts, connections.clients));
    const http: Beside["http"] = (local, held) => {
      const parts = { host: this.#host, local, held, metrics };
      return { clients: clientHttp(parts, maxConcurrentStreams, config), metrics: metricsHttp(parts) };
    };
    const own = ownServices(new DiagnosisHandlers(this.#host, facts, this.#counters, config));
    const bounds = { connections, maxConcurrentStreams, requestBytesMax };
    const beside = { counters: this.#counters, own, http, unusable: this.#unusable, ...bounds };
    this.#edge = new GrpcEdge(this.#host, facts, electionMs, answerBytesMax, admission, beside);
    this.#watching = setInterval(() => void this.#checkLock(), lockCheckMs);
  }

  readonly #unusable = (text: string) => this.#trouble("files of TLS", text);

  readonly #synced = (tookMs: number) => this.#counters.synced(tookMs);

  #measured(facts: ClusterFacts, connections: Connections): Measured {
    const status = this.#host.status();
    const { bytes: clients } = this.#edge.traffic;
    const { quotaBytes } = this.#config;
    return { status, facts, counters: this.#counters, connections, clients, quotaBytes };
  }

  #copiesWithin(electionMs: number): Copies {
    return new Copies({
      host: this.#host,
      self: this.id,
      electionMs,
      nameOf: (member) => this.#nameOf(member),
      info: (text) => this.#logger.info(text),
      warn: (text) => this.#trouble(`copies ${text}`, text),
    });
  }

  async open(): Promise<void> {
    await this.#peers.open(this.#config.listenPeerUrls);
    const { clientTls, initialCorruptCheck, listenClientUrls, listenMetricsUrls } = this.#config;
    if (initialCorruptCheck) await Promise.race([this.#copies.checkOwn(), this.failed]);
    await this.#edge.listen(listenClientUrls, listenMetricsUrls, clientTls);
  }

  #connections() {
    return {
      clients: new Connections(this.#config.connectionsMax, (text) => this.#trouble("connections", text)),
      metrics: new Connections(metricsConnectionsMax, (text) => this.#trouble("metrics", text)),
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearInterval(this.#watching);
    clearTimeout(this.#leaving);
    this.#copies.close();
    await this.#handOver();
    await this.#edge.close();
    await this.#host.stop();
    this.#peers.close();
    await this.#directory.journal.close();
    await this.#directory.lock.release();
  }

  /** To the follower that has most of the log, so that the others need not wait for an election timeout. */
  async #handOver(): Promise<void> {
    const { role, followers, membership } = this.#host.status();
    if (role !== "leader") return;
    const fit = followers.filter(({ id, active }) => active && membership.voters.includes(id));
    const [next] = fit.sort((a, b) => b.matchIndex - a.matchIndex);
    if (next === undefined) return;
    this.#host.step({ kind: "transfer", to: next.id });
    const endMs = performance.now() + transferMsMax;
    while (this.#host.status().role === "leader" && performance.now() < endMs)
      await new Promise((resolve) => setTimeout(resolve, transferLookMs));
  }

  #peersHandler(): PeersHandler {
    const disks = this.#disks;
    return {
      message: (message: PeerMessage) => this.#host.step({ kind: "message", message }),
      arriving: (member) => this.#host.step({ kind: "arriving", member }),
      snapshot: (message: InstallSnapshot, pieces, state) =>
        this.#host.receiveSnapshot(message, pieces, state),
      snapshotSent: (member, arrived) => this.#host.step({ kind: "snapshot-sent", member, arrived }),
      unreachable: (member) => this.#host.step({ kind: "unreachable", member }),
      connected: (member, takesRepeats) => this.#host.step({ kind: "connected", member, takesRepeats }),
      drained: (member) => this.#host.step({ kind: "drained", member }),
      isKnownDisk: (member, disk) => this.#agreedDisk(member, disk) ?? disks.isKnown(member, disk),
      learnDisk: async (member, disk) => this.#agreedDisk(member, disk) ?? (await disks.learn(member, disk)),
      speaks: (member, version) => this.#host.step({ kind: "peer-version", member, version }),
      removed: () => this.#leave(),
      trouble: (cause, text) => {
        const isStarting = performance.now() < this.#startingEndMs;
        if (!isStarting || !isUsualAtStart(text)) this.#trouble(cause, text);
      },
    };
  }

  #rollChanged(roll: Roll): void {
    this.#peers.update(roll);
    this.#raise(roll.version);
    if (roll.removed.has(this.id)) this.#leave();
  }

  /** A server of a former version must not begin with this directory any more. */
  #raise(version: number): void {
    if (version <= this.#disks.version) return;
    this.#logger.info(`the cluster speaks version ${version} from now on`);
    this.#disks.raise(version).catch((error: unknown) => this.#fail(error));
  }

  /** What the log says of a member's disk counts more than what this server has seen by itself. */
  #agreedDisk(member: bigint, disk: bigint): boolean | undefined {
    const agreed = this.#peers.known.find(({ id }) => id === member)?.disk ?? 0n;
    return agreed === 0n ? undefined : agreed === disk;
  }

  /** This server is no member any more: it has answered who asked for that by then, and told the others. */
  #leave(): void {
    if (this.#leaving !== undefined) return;
    const text = `this server (${idText(this.id)}) was removed from the core: ${this.#directory.path} is of no more use to it`;
    this.#leaving = setTimeout(() => this.#fail(new LeaseholdError("MEMBER_REMOVED", text)), leaveMs);
  }

  #trouble(cause: string, text: string): void {
    const line = this.#closing === undefined ? this.#limit.line(cause, text, performance.now()) : undefined;
    if (line !== undefined) this.#logger.warn(line);
  }

  #tellLeadership({ role, leader, term }: NonNullable<Effects["leadership"]>): void {
    const before = this.#leader;
    this.#leader = leader;
    if (leader === 0n) {
      if (before !== 0n) this.#logger.info(`lost its leader, ${this.#nameOf(before)}, in term ${term}`);
      return;
    }
    this.#counters.leaderChanges += 1;
    this.#logger.info(
      role === "leader" ? `leads in term ${term}` : `follows ${this.#nameOf(leader)} in term ${term}`,
    );
  }

  #nameOf(member: bigint): string {
    const known = this.#peers.known.find(({ id }) => id === member)?.name ?? "";
    return known === "" ? idText(member) : known;
  }

  async #checkLock(): Promise<void> {
    if (this.#closing !== undefined || (await this.#directory.lock.isOurs())) return;
    const text = `the data directory ${this.#directory.path} has been taken away`;
    this.#fail(new LeaseholdError("DATA_IN_USE", text));
  }
}

/** Until the log says more: who moved before the last snapshot is not looked for where it began. */
function rollOf({ members: { all, removed }, version }: CoreState, founding: readonly CoreMember[]): Roll {
  return { members: all.length > 0 ? all : founding, removed: new Set(removed), version };
}

function otherUrlsOf({ initialCluster, name }: CoreConfig): string[] {
  return initialCluster.filter((member) => member.name !== name).flatMap(({ peerUrls }) => peerUrls);
}

function limitsOf({ operationsMax, requestBytesMax, snapshotEntries, tokens }: CoreConfig) {
  return { operationsMax, requestBytesMax, snapshotEntries, tokenTtlMs: tokens.ttlMs };
}

function checkCertificate(tls: TlsFiles | undefined): void {
  if (tls === undefined) return;
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(readTlsFile(tls.certFile));
  } catch (error) {
    if (error instanceof LeaseholdError) throw error;
    throw invalid(`${tls.certFile} is no certificate: ${(error as Error).message}`);
  }
  if (Date.parse(certificate.validTo) < Date.now())
    throw invalid(`the certificate ${tls.certFile} expired on ${certificate.validTo}`);
  checkKey(tls, certificate);
}

/** Elsewhere on our command line the same flag names a cluster key: who takes one for the other is told. */
function checkKey({ certFile, keyFile }: TlsFiles, certificate: X509Certificate): void {
  let key: KeyObject;
  try {
    key = createPrivateKey(readTlsFile(keyFile));
  } catch (error) {
    if (error instanceof LeaseholdError) throw error;
    throw invalid(`${keyFile} is no private key in PEM: a core's key file is that of ${certFile}`);
  }
  if (!certificate.checkPrivateKey(key))
    throw invalid(`${keyFile} is the private key of another certificate than ${certFile}`);
}

function bytesBelow(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => statSync(joinPath(folder, name), { throwIfNoEntry: false }))
    .reduce((sum, found) => sum + (found?.isFile() ? found.size : 0), 0);
}
