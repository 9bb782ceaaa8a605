import { LeaseholdError } from "leasehold/common";
import type { CoreHost } from "../host/host.js";
import type { InstallSnapshot } from "../raft/types.js";
import type { Roll } from "../replica/roll.js";
import type { PeerMessage } from "../replica/types.js";
import type { CoreState } from "../state/state.js";
import type { CoreMember } from "../state/members.js";
import { idText } from "./config/identity.js";
import type { DiskIndex } from "./disk/disk-index.js";
import { isUsualAtStart, type PeersHandler } from "./peers/peers.js";
import type { Reports } from "./reports.js";

/** Time between learning of its own removal and the server's end, ms. As in etcd. */
const leaveMs = 1_000;

/**
 * Servers start one after the other: for this long, ms, a missing member, or one that another doesn't know,
 * is normal.
 */
const startingMs = 5_000;

/** Facts about this server. */
export interface Own {
  readonly id: bigint;
  /** Path of its data directory. */
  readonly path: string;
}

/** Passes input from the other servers to the host, and follows membership changes. */
export class PeerEvents implements PeersHandler {
  readonly #own: Own;
  readonly #host: CoreHost;
  readonly #disks: DiskIndex;
  readonly #reports: Reports;
  readonly #members: () => readonly CoreMember[];
  readonly #fail: (error: unknown) => void;
  readonly #startingEndMs = performance.now() + startingMs;
  #leaving: NodeJS.Timeout | undefined;

  constructor(
    own: Own,
    host: CoreHost,
    disks: DiskIndex,
    reports: Reports,
    members: () => readonly CoreMember[],
    fail: (error: unknown) => void,
  ) {
    this.#own = own;
    this.#host = host;
    this.#disks = disks;
    this.#reports = reports;
    this.#members = members;
    this.#fail = fail;
  }

  message(message: PeerMessage): void {
    this.#host.step({ kind: "message", message });
  }

  arriving(member: bigint): void {
    this.#host.step({ kind: "arriving", member });
  }

  snapshot(
    message: InstallSnapshot,
    pieces: readonly Uint8Array[],
    state: CoreState,
  ): ReturnType<PeersHandler["snapshot"]> {
    return this.#host.receiveSnapshot(message, pieces, state);
  }

  snapshotSent(member: bigint, arrived: boolean): void {
    this.#host.step({ kind: "snapshot-sent", member, arrived });
  }

  unreachable(member: bigint): void {
    this.#host.step({ kind: "unreachable", member });
  }

  connected(member: bigint, takesRepeats: boolean): void {
    this.#host.step({ kind: "connected", member, takesRepeats });
  }

  drained(member: bigint): void {
    this.#host.step({ kind: "drained", member });
  }

  speaks(member: bigint, version: number): void {
    this.#host.step({ kind: "peer-version", member, version });
  }

  isKnownDisk(member: bigint, disk: bigint): boolean | undefined {
    return this.#agreedDisk(member, disk) ?? this.#disks.isKnown(member, disk);
  }

  async learnDisk(member: bigint, disk: bigint): Promise<boolean> {
    return this.#agreedDisk(member, disk) ?? (await this.#disks.learn(member, disk));
  }

  /** This server was removed. Within `leaveMs` it answers the caller and notifies the others. */
  removed(): void {
    if (this.#leaving !== undefined) return;
    const { id, path } = this.#own;
    const text = `this server (${idText(id)}) was removed from the core: ${path} is of no more use to it`;
    this.#leaving = setTimeout(() => this.#fail(new LeaseholdError("MEMBER_REMOVED", text)), leaveMs);
  }

  trouble(cause: string, text: string): void {
    const isStarting = performance.now() < this.#startingEndMs;
    if (!isStarting || !isUsualAtStart(text))
      this.#reports.limited("peer-trouble", cause, text, { cause, error: text });
  }

  refused(address: string, text: string): void {
    const fields = { call: "peer", subject: "", address };
    // Limited per address, so that one address does not hide the refusals of others.
    this.#reports.limited("credential-refused", `${address} peer`, `${address} was refused: ${text}`, fields);
  }

  unusable(error: string): void {
    this.#reports.limited("tls-file-unusable", "peers", error, { error });
  }

  /** The membership has changed. */
  changed(roll: Roll): void {
    this.#raise(roll.version);
    if (roll.removed.has(this.#own.id)) this.removed();
  }

  close(): void {
    clearTimeout(this.#leaving);
  }

  /** Servers of earlier versions must not start with this directory from now on. */
  #raise(version: number): void {
    if (version <= this.#disks.version) return;
    this.#reports.log("version-raised", `the cluster speaks version ${version} from now on`, { version });
    this.#disks.raise(version).catch((error: unknown) => this.#fail(error));
  }

  /** The log's record of a member's disk takes precedence over what this server has seen itself. */
  #agreedDisk(member: bigint, disk: bigint): boolean | undefined {
    const agreed = this.#members().find(({ id }) => id === member)?.disk ?? 0n;
    return agreed === 0n ? undefined : agreed === disk;
  }
}
