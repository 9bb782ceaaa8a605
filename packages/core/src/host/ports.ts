import type { BothClocks } from "leasehold/common";
import type { SnapshotMeta } from "../raft/types.js";
import type { Effects, PeerMessage, SnapshotToWrite } from "../replica/types.js";

/** The content of a snapshot that a leader has sent. */
export interface ReceivedSnapshot {
  readonly meta: SnapshotMeta;
  readonly pieces: readonly Uint8Array[];
}

/**
 * Called once, and never before the call that it was passed to has returned. After an error nothing is
 * certain.
 */
export type Done = (error?: unknown) => void;

/** Storage of a server's log and its snapshots. */
export interface HostDisk {
  /**
   * Begins a write to the log. `done` means that this write, and every earlier one, is on disk.
   *
   * @param received the content of `persist.snapshot`
   */
  persist(persist: NonNullable<Effects["persist"]>, received: ReceivedSnapshot | undefined, done: Done): void;
  /** Begins to write a snapshot beside the log's own writes, until the signal aborts. */
  saveSnapshot(snapshot: SnapshotToWrite, signal: AbortSignal, done: Done): void;
}

/** Bounds a host's work before other work of the same process runs. */
export interface Turn {
  readonly isOver: boolean;
}

/** A host's ports to its machine. */
export interface HostPorts {
  readonly now: () => BothClocks;
  /** Calls `run` periodically until the returned function is called. Late calls do not pile up. */
  readonly every: (periodMs: number, run: () => void) => () => void;
  /** Calls `turn` once, soon, and never before `defer` has returned. */
  readonly defer: (turn: () => void) => void;
  readonly beginTurn: () => Turn;
  readonly disk: HostDisk;
  /**
   * Sends to another server. The message may be lost; the newest snapshot on disk may replace an older one.
   * @returns false without a connection, or room in it: nothing of the message is sent
   */
  readonly send: (message: PeerMessage) => boolean;
}
