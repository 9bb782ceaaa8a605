import type { BothClocks } from "leasehold/common";
import type { SnapshotMeta } from "../raft/types.js";
import type { Effects, PeerMessage, SnapshotToWrite } from "../replica/types.js";

/** The content of a snapshot that a leader has sent. */
export interface ReceivedSnapshot {
  readonly meta: SnapshotMeta;
  readonly pieces: readonly Uint8Array[];
}

/**
 * Called once, and never before the call that received it has returned. After an error, nothing is known
 * about what is on disk.
 */
export type Done = (error?: unknown) => void;

/** Storage of a server's log and its snapshots. */
export interface HostDisk {
  /**
   * Begins a write to the log. `done` means that this write and every earlier one are on disk.
   *
   * @param received the content of `persist.snapshot`
   */
  persist(persist: NonNullable<Effects["persist"]>, received: ReceivedSnapshot | undefined, done: Done): void;
  /** Begins to write a snapshot concurrently with writes to the log. The signal aborts it. */
  saveSnapshot(snapshot: SnapshotToWrite, signal: AbortSignal, done: Done): void;
}

/** Bounds the work of a host before it yields to other work of the process. */
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
   * Sends to another server. The message may be lost. The newest snapshot on disk may replace an older one.
   * @returns false if there is no connection, or no room in it: then nothing of the message is sent
   */
  readonly send: (message: PeerMessage) => boolean;
}
