import type { RaftLimits } from "./api.js";
import type { MemberId } from "./types.js";

/** An unacknowledged append. */
interface Inflight {
  readonly lastIndex: number;
  readonly bytes: number;
}

/**
 * The leader's record of another member (figure 2: nextIndex, matchIndex), with flow control:
 *
 * - probe: one message at a time, until it is known where the logs agree;
 * - replicate: messages are pipelined within the window;
 * - snapshot: nothing, until the snapshot has arrived.
 */
export class Follower {
  readonly id: MemberId;
  state: "probe" | "replicate" | "snapshot" = "probe";
  matchIndex = 0;
  nextIndex: number;
  /** Heard from since the last check-quorum (thesis 6.2). A new member gets a full election timeout. */
  active = true;
  /** Ticks since it was last heard from. */
  silentTicks = Infinity;
  /** The newest read round it has acknowledged (thesis 6.4). */
  round = 0;
  /** The greatest commit index sent to it. */
  sentCommit = 0;
  /** It answers heartbeats but not appends, which may be lost: send an append, even an empty one. */
  mustProbe = false;
  /** Index of the snapshot being sent. */
  snapshotIndex = 0;
  /** In `probe`: further entries wait for the answer to this one. */
  #isProbeSent = false;
  #inflight: Inflight[] = [];
  #inflightBytes = 0;

  constructor(id: MemberId, nextIndex: number) {
    this.id = id;
    this.nextIndex = nextIndex;
  }

  /** Whether entries may be sent. */
  hasRoom(limits: RaftLimits): boolean {
    switch (this.state) {
      case "probe":
        return !this.#isProbeSent;
      case "replicate":
        return (
          this.#inflight.length < limits.inflightMessagesMax && this.#inflightBytes < limits.inflightBytesMax
        );
      case "snapshot":
        return false;
    }
  }

  /** An append up to `lastIndex` was sent. */
  sent(lastIndex: number, bytes: number, commit: number): void {
    this.sentCommit = commit;
    this.mustProbe = false;
    if (this.state === "probe") this.#isProbeSent = true;
    else if (lastIndex >= this.nextIndex) {
      this.nextIndex = lastIndex + 1;
      this.#inflight.push({ lastIndex, bytes });
      this.#inflightBytes += bytes;
    }
  }

  sentSnapshot(index: number): void {
    this.#become("snapshot");
    this.snapshotIndex = index;
  }

  /** The follower's log agrees with the leader's up to `index`, and is on disk. */
  accepted(index: number): void {
    this.matchIndex = Math.max(this.matchIndex, index);
    this.nextIndex = Math.max(this.nextIndex, index + 1);
    if (this.state === "replicate") this.#answered(index);
    else if (this.state === "probe" || index >= this.snapshotIndex) {
      this.#become("replicate");
      this.nextIndex = this.matchIndex + 1;
    }
  }

  /**
   * The follower lacks the entry before `refused + 1`; the logs may agree at `hint`. Late answers are
   * ignored.
   */
  rejected(refused: number, hint: number): void {
    if (this.state === "replicate" && refused > this.matchIndex) {
      this.#become("probe");
      this.nextIndex = this.matchIndex + 1;
    } else if (this.state === "probe" && this.nextIndex - 1 === refused) {
      this.#isProbeSent = false;
      this.nextIndex = Math.max(Math.min(refused, hint + 1), this.matchIndex + 1);
    }
  }

  /**
   * The follower is reachable. The probe or the whole window may be lost, which an empty append finds out; or
   * they are still in flight on a slow connection, behind other entries.
   */
  answeredHeartbeat(lastIndex: number): void {
    const isProbing = this.state === "probe" && this.#isProbeSent;
    if (isProbing || this.matchIndex < lastIndex) this.mustProbe = this.state !== "snapshot";
  }

  unreachable(): void {
    if (this.state !== "replicate") return;
    this.#become("probe");
    this.nextIndex = this.matchIndex + 1;
  }

  /**
   * The transfer is over. The next message waits for the follower's answer to it, or to a heartbeat, so a
   * failure is not retried at once.
   */
  snapshotEnded(arrived: boolean): void {
    if (this.state !== "snapshot") return;
    this.#become("probe");
    this.nextIndex = 1 + (arrived ? Math.max(this.matchIndex, this.snapshotIndex) : this.matchIndex);
    this.#isProbeSent = true;
  }

  #become(state: "probe" | "replicate" | "snapshot"): void {
    this.state = state;
    this.mustProbe = false;
    this.#isProbeSent = false;
    this.#inflight = [];
    this.#inflightBytes = 0;
  }

  #answered(index: number): void {
    let count = 0;
    for (; count < this.#inflight.length && this.#inflight[count]!.lastIndex <= index; count += 1)
      this.#inflightBytes -= this.#inflight[count]!.bytes;
    if (count > 0) this.#inflight.splice(0, count);
  }
}
