import { LeaseholdError } from "leasehold/common";
import type { Logger } from "leasehold/runtime";
import type { CoreHost } from "../host/host.js";
import { defaultLimits } from "../replica/options.js";
import { rollAtStart } from "../replica/roll.js";
import type { ClientApi } from "./api/api.js";
import type { SignedTokens } from "./auth/signed-tokens.js";
import { clientSide } from "./client-side.js";
import { type CoreConfig, otherPeerUrls } from "./config/config.js";
import type { RunningCore } from "./config/flags.js";
import { foundingMember } from "./config/identity.js";
import { Copies } from "./copies.js";
import type { DataDirectory } from "./disk/data-directory.js";
import { DiskIndex } from "./disk/disk-index.js";
import { handOver } from "./hand-over.js";
import { Counters } from "./metrics/counters.js";
import { ProcessMetrics } from "./process-metrics.js";
import { newHost } from "./new-host.js";
import { PeerEvents } from "./peer-events.js";
import { Peers } from "./peers/peers.js";
import { Reports } from "./reports.js";

/** How often a server checks that its data directory is still its own. */
const lockCheckMs = 5_000;

/** A peer that is silent for a shorter time keeps its connections, and the messages in flight on them. */
const silenceMsMin = 5_000;

/**
 * Multiple of the quota. Requests in flight may exceed the quota, and quotas may differ between servers while
 * they are changed.
 */
const snapshotsPerQuota = 2;

/** A server of the core: the client side, the replica, and the peers. */
export class Server implements RunningCore {
  readonly name: string;
  readonly id: bigint;
  readonly cluster: bigint;
  readonly clientUrls: readonly string[];
  readonly failed: Promise<never>;
  readonly #config: CoreConfig;
  /** Without the rest of the data directory's content, whose first version would otherwise stay in memory. */
  readonly #directory: Pick<DataDirectory, "journal" | "lock" | "path">;
  readonly #host: CoreHost;
  readonly #copies: Copies;
  readonly #peers: Peers;
  readonly #peerEvents: PeerEvents;
  readonly #reports: Reports;
  readonly #clients: ClientApi;
  readonly #processMetrics: ProcessMetrics;
  readonly #lockChecks: NodeJS.Timeout;
  #fail: (error: unknown) => void = () => undefined;
  #closing: Promise<void> | undefined;

  constructor(config: CoreConfig, directory: DataDirectory, logger: Logger, signed?: SignedTokens) {
    const { journal, lock, path, record, snapshots, state } = directory;
    const { id, cluster, disk, members } = record;
    const { name, electionTicks, heartbeatMs, peerTls } = config;
    this.name = name;
    this.id = id;
    this.cluster = cluster;
    this.clientUrls = config.advertiseClientUrls;
    this.#config = config;
    this.#directory = { journal, lock, path };
    this.failed = new Promise((_, reject) => (this.#fail = reject));
    // For programs that do not await it: otherwise the rejection would end them.
    this.failed.catch(() => undefined);
    const fail = (error: unknown) => this.#fail(error);
    const [electionMs, founding] = [electionTicks * heartbeatMs, members.map(foundingMember)];
    const counters = new Counters();
    const known = () => this.#peers.known;
    const reports = new Reports(logger, counters, known);
    this.#reports = reports;
    this.#host = newHost(config, directory, founding, {
      send: (message) => this.#peers.send(message),
      failed: fail,
      trouble: (error) => reports.limited("server-trouble", "host", error, { error }),
      leadership: (leadership) => reports.leadership(leadership),
      roll: (roll) => {
        this.#peers.update(roll);
        this.#peerEvents.changed(roll);
      },
      compared: (comparison) => this.#copies.take(comparison),
      synced: (tookMs) => counters.synced(tookMs),
      snapshotSaved: (tookMs) => counters.snapshotSave.observe(tookMs / 1e3),
    });
    this.#copies = new Copies({ host: this.#host, self: id, electionMs, reports });
    const disks = new DiskIndex(path, record);
    this.#peerEvents = new PeerEvents({ id, path }, this.#host, disks, reports, known, fail);
    this.#peers = new Peers({
      self: { cluster, id, name, disk },
      roll: rollAtStart(state, founding),
      initialUrls: otherPeerUrls(config),
      tls: peerTls,
      silenceMs: Math.max(silenceMsMin, electionMs),
      snapshots,
      snapshotBytesMax: snapshotsPerQuota * (config.quotaBytes + defaultLimits.requestBytesTotalMax),
      counters,
      handler: this.#peerEvents,
    });
    this.#processMetrics = new ProcessMetrics(config);
    const processText = () => this.#processMetrics.text();
    const clientParts = { config, record, path, host: this.#host, counters, processText, reports, signed };
    this.#clients = clientSide(clientParts);
    this.#lockChecks = setInterval(() => void this.#checkLock(), lockCheckMs);
  }

  async open(): Promise<void> {
    await this.#peers.open(this.#config.listenPeerUrls);
    const { clientTls, initialCorruptCheck, listenClientUrls, listenMetricsUrls } = this.#config;
    if (initialCorruptCheck) await Promise.race([this.#copies.checkOwn(), this.failed]);
    await this.#clients.listen(listenClientUrls, listenMetricsUrls, clientTls);
  }

  get hasLeader(): boolean {
    return this.#host.status().leader !== 0n;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#reports.close();
    clearInterval(this.#lockChecks);
    this.#processMetrics.close();
    this.#peerEvents.close();
    this.#copies.close();
    await handOver(this.#host);
    await this.#clients.close();
    await this.#host.stop();
    this.#peers.close();
    await this.#directory.journal.close();
    await this.#directory.lock.release();
  }

  async #checkLock(): Promise<void> {
    const { lock, path } = this.#directory;
    if (this.#closing !== undefined || (await lock.isOurs())) return;
    this.#fail(
      new LeaseholdError(
        "DATA_IN_USE",
        `the data directory ${path} was removed, or is used by another process`,
      ),
    );
  }
}
