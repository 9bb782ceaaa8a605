import type { BothClocks } from "leasehold/common";
import type { SnapshotMeta } from "../raft/types.js";
import type { Effects, PeerMessage, SnapshotToWrite } from "../replica/types.js";

/** The content of a snapshot that a leader has sent. */
export interface ReceivedSnapshot {
  readonly meta: SnapshotMeta;
  readonly pieces: readonly Uint8Array[];
}

/**
 * Called once, and never before the call that it was given to has returned. An error means that nothing is
 * certain.
 */
export type Done = (error?: unknown) => void;

/** Where a server's log and its snapshots are kept. */
export interface HostDisk {
  /**
   * Begins a write to the log. `done` means that this write, and every one that was begun before it, is on
   * disk.
   *
   * @param received the content of `persist.snapshot`
   */
  persist(persist: NonNullable<Effects["persist"]>, received: ReceivedSnapshot | undefined, done: Done): void;
  /** Begins to write a snapshot beside the log's own writes, and gives it up when the signal is aborted. */
  saveSnapshot(snapshot: SnapshotToWrite, signal: AbortSignal, done: Done): void;
}

/** Limits what a host does before other work of the same process has its turn. */
export interface Turn {
  readonly isOver: boolean;
}

/** What a host needs of the machine that it runs on. */
export interface HostPorts {
  readonly now: () => BothClocks;
  /**
   * Calls `run` every so often until the function that it returns is called. Calls that are late do not pile
   * up.
   */
  readonly every: (periodMs: number, run: () => void) => () => void;
  /** Calls `turn` once, soon, and never before `defer` has returned. */
  readonly defer: (turn: () => void) => void;
  readonly beginTurn: () => Turn;
  readonly disk: HostDisk;
  /**
   * Sends to another server. The message may be lost; the newest snapshot on disk stands in for an older one.
   * @returns false if there is no connection, or it has no room: nothing of the message leaves
   */
  readonly send: (message: PeerMessage) => boolean;
}
