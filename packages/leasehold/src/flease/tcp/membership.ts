import type { Reading } from "../protocol/clock.js";
import type { Cluster } from "../views/cluster.js";
import type { Link } from "./transport/link.js";
import type { Transport } from "./transport/transport.js";
import type { Echo } from "./wire/codec.js";
import { DuplicateWatch } from "./duplicate-watch.js";

/** Timeout for a member's answer to an announcement. */
const announceTimeoutMs = 1_000;

/**
 * Validity of a confirmation, in heartbeats. A silent connection is kept for five heartbeats by a clock whose
 * rate differs by less than a tenth, and no other process is admitted while it is kept.
 */
const lapseHeartbeats = 4;

/** The node, as seen by `Membership`. */
export interface MembershipHost {
  readonly nodeId: string;
  readonly cluster: Cluster;
  readonly transport: Pick<Transport, "identity" | "call">;
  /**
   * Members without a vote confirm nobody: two processes could each be confirmed by members that the other
   * does not know.
   */
  readonly views: { isVoter(id: string): boolean };
  now(): Reading;
}

/** An announcement of our connections to the member at the other end of a link. */
interface Announcement {
  /** The incarnation under this id that was connected before. */
  readonly before: string;
  /** `due` again when our connections have changed since it was sent. */
  state: "due" | "sent" | "confirmed";
  /** The answer is pending; later changes follow it. At a start all members connect at once. */
  isUnderWay: boolean;
}

/**
 * A member's part in the rule that one process votes per id: it announces its connections to the other
 * members, receives theirs, and decides whether its own vote counts.
 */
export class Membership {
  readonly #host: MembershipHost;
  readonly #complain: (cause: string, text: string) => void;
  /** The rule itself. */
  readonly duplicates: DuplicateWatch;
  readonly #links = new Map<Link, Announcement>();

  /** @param complain logs for the operator, under a stable name */
  constructor(host: MembershipHost, heartbeatMs: number, complain: (cause: string, text: string) => void) {
    this.#host = host;
    this.#complain = complain;
    const lapseMs = lapseHeartbeats * heartbeatMs;
    this.duplicates = new DuplicateWatch({ members: host.cluster.settings.members.length, lapseMs });
  }

  connected(link: Link): void {
    const before = this.duplicates.linked(link.peerId, link.incarnation);
    this.#links.set(link, { before, state: "due", isUnderWay: false });
    this.#changed();
  }

  disconnected(link: Link): void {
    if (!this.#links.delete(link)) return;
    this.duplicates.unlinked(link.peerId);
    this.#changed();
  }

  /** Handles a batch of another member: it acknowledges what that member has received from us. */
  echoed(link: Link, echo: Echo, nowMs: number): void {
    if (echo.loMs !== 0 && this.#host.views.isVoter(link.peerId))
      this.duplicates.confirmed(link.peerId, Math.min(echo.monoMs, nowMs));
  }

  #changed(): void {
    for (const announcement of this.#links.values()) announcement.state = "due";
    this.#announceAll();
  }

  #announceAll(): void {
    for (const [link, announcement] of this.#links)
      if (announcement.state === "due" && !announcement.isUnderWay) void this.#announce(link, announcement);
  }

  /** The next `maintain` repeats a failed announcement while the connection is open. */
  async #announce(link: Link, announcement: Announcement): Promise<void> {
    announcement.state = "sent";
    announcement.isUnderWay = true;
    const sentMs = this.#host.now().mono;
    try {
      const params = { connected: this.duplicates.connected, before: announcement.before };
      await this.#host.transport.call(link, "connected", params, announceTimeoutMs);
    } catch {
      announcement.state = "due";
      announcement.isUnderWay = false;
      return;
    }
    announcement.isUnderWay = false;
    const stands = this.#links.get(link) === announcement;
    if (stands && this.#host.views.isVoter(link.peerId)) this.duplicates.confirmed(link.peerId, sentMs);
    if (announcement.state === "sent") announcement.state = "confirmed";
    else if (stands) void this.#announce(link, announcement);
  }

  /** CALL `connected`: another member announces its connections. */
  connectionsAnnounced(from: Link, params: unknown): null {
    if (!this.#links.has(from)) return null;
    const { connected, before } = (params ?? {}) as { connected?: unknown; before?: unknown };
    const announced = new Map<string, string>();
    const linked = [...this.#links.keys()].map(({ peerId }) => peerId);
    for (const id of new Set([...this.#host.cluster.settings.members, ...linked])) {
      const incarnation = (connected as Record<string, unknown> | null | undefined)?.[id];
      if (typeof incarnation === "string") announced.set(id, incarnation);
    }
    const contradicted = this.duplicates.connectionsOf(
      from.peerId,
      announced,
      before === this.#host.transport.identity.incarnation,
    );
    for (const link of this.#links.keys()) {
      if (!contradicted.includes(link.peerId)) continue;
      const text = `two processes are the member ${link.peerId}: one is connected here, another with ${from.peerId}`;
      this.#complain(`twins ${link.peerId}`, text);
      // From here on neither process votes. A process that reconnects is admitted when the other has gone.
      link.close(text);
    }
    return null;
  }

  /** The member refused us: it is connected to another process with our id, or knows a peer that is. */
  refusedBy(memberId: string, text: string): void {
    if (this.#host.cluster.settings.members.includes(memberId)) this.duplicates.refusedBy(memberId, text);
  }

  /**
   * Reports to the member that a process with its id was refused: its operator may be able to end that
   * process.
   */
  reportRival(link: Link, address: string): void {
    this.#host.transport.call(link, "rival", { address }, announceTimeoutMs).catch(() => {
      // The member has gone, so the other process may take its place.
    });
  }

  /** CALL `rival`: another member reports a second process with our id. */
  rivalReported(from: Link, params: unknown): null {
    const address = (params as { address?: unknown } | null)?.address;
    if (from.role !== "member") return null;
    const where = typeof address === "string" ? address.slice(0, 64) : "an unknown address";
    const { nodeId } = this.#host;
    const text = `another process, at ${where}, says that it is the member ${nodeId} too; ${from.peerId} refused it`;
    this.duplicates.duplicateSeen(text, this.#host.now().mono);
    this.#complain("rival", text);
    return null;
  }

  /** Returns true when the acceptor must begin a recovery wait now. Called several times a second. */
  maintain(now: Reading, ready: boolean): boolean {
    this.confirmAnew(now.mono);
    return this.duplicates.needsRecoveryWait(now.mono, ready);
  }

  /**
   * Asks for fresh confirmations. These take one round trip, where heartbeats may take two seconds. Needed
   * after this process was suspended, or when the members have changed.
   */
  confirmAnew(nowMs: number): void {
    if (!this.duplicates.votes(nowMs))
      for (const announcement of this.#links.values())
        if (announcement.state === "confirmed") announcement.state = "due";
    this.#announceAll();
  }

  /**
   * Whether our vote counts until then and every announcement is acknowledged, so that `maintain` has nothing
   * to do.
   */
  isSettledUntil(monoMs: number): boolean {
    if (!this.duplicates.votes(monoMs)) return false;
    for (const { state } of this.#links.values()) if (state !== "confirmed") return false;
    return true;
  }

  /** Starts over as another incarnation; every connection ends. */
  restarted(): void {
    this.#links.clear();
    this.duplicates.restarted();
  }
}
