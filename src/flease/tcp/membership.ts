import type { Reading } from "../protocol/clock.js";
import type { Cluster } from "./cluster.js";
import type { Link } from "./transport/link.js";
import type { Transport } from "./transport/transport.js";
import type { Echo } from "./wire/codec.js";
import type { Identity } from "./wire/identity.js";
import { TwinWatch } from "./twin-watch.js";

/** Time for a member to answer that it has heard what it was told. */
const tellTimeoutMs = 1_000;

/**
 * A confirmation counts for so many heartbeats. A connection on which nothing arrives stands for five, by a clock that differs by
 * less than a tenth, and as long as it stands no other process is let in.
 */
const lapseHeartbeats = 4;

/** Whoever runs the transport. */
export interface MembershipHost {
  readonly nodeId: string;
  readonly cluster: Cluster;
  readonly transport: Pick<Transport, "identity" | "call">;
  now(): Reading;
}

/** A link to another member, and what it has still to be told. */
interface Told {
  /** The incarnation under this id that was connected before. */
  readonly before: string;
  /** `due` again when something has changed since it was said. */
  state: "due" | "said" | "told";
}

/**
 * A member's part in seeing to it that one process votes under each id: tells the other members whom it is connected with,
 * hears it from them, and knows whether its own vote counts.
 */
export class Membership {
  readonly #host: MembershipHost;
  readonly #complain: (cause: string, text: string) => void;
  readonly #twins: TwinWatch;
  readonly #links = new Map<Link, Told>();

  /** @param complain says what the operator should know, under a stable name */
  constructor(host: MembershipHost, heartbeatMs: number, complain: (cause: string, text: string) => void) {
    this.#host = host;
    this.#complain = complain;
    const lapseMs = lapseHeartbeats * heartbeatMs;
    this.#twins = new TwinWatch({ members: host.cluster.settings.members.length, lapseMs });
  }

  connected(link: Link): void {
    this.#links.set(link, { before: this.#twins.linked(link.peerId, link.incarnation), state: "due" });
    this.#changed();
  }

  disconnected(link: Link): void {
    if (!this.#links.delete(link)) return;
    this.#twins.unlinked(link.peerId);
    this.#changed();
  }

  /** A batch of another member tells which of ours it has received. */
  heard(link: Link, echo: Echo, nowMs: number): void {
    if (echo.loMs !== 0) this.#twins.confirmed(link.peerId, Math.min(echo.monoMs, nowMs));
  }

  #changed(): void {
    for (const told of this.#links.values()) told.state = "due";
    this.#tellAll();
  }

  #tellAll(): void {
    for (const [link, told] of this.#links) if (told.state === "due") void this.#tell(link, told);
  }

  /** What fails is said again with the next look, as long as the connection stands. */
  async #tell(link: Link, told: Told): Promise<void> {
    told.state = "said";
    const sentMs = this.#host.now().mono;
    try {
      const params = { connected: this.#twins.connected, before: told.before };
      await this.#host.transport.call(link, "connected", params, tellTimeoutMs);
      if (this.#links.get(link) === told) this.#twins.confirmed(link.peerId, sentMs);
      if (told.state === "said") told.state = "told";
    } catch {
      told.state = "due";
    }
  }

  /** CALL `connected`: another member tells whom it is connected with. */
  hear(from: Link, params: unknown): null {
    if (!this.#links.has(from)) return null;
    const { connected, before } = (params ?? {}) as { connected?: unknown; before?: unknown };
    const tells = new Map<string, string>();
    for (const id of this.#host.cluster.settings.members) {
      const incarnation = (connected as Record<string, unknown> | null | undefined)?.[id];
      if (typeof incarnation === "string") tells.set(id, incarnation);
    }
    const twins = this.#twins.told(from.peerId, tells, before === this.#host.transport.identity.incarnation);
    for (const link of this.#links.keys()) {
      if (!twins.includes(link.peerId)) continue;
      const text = `two processes are the member ${link.peerId}: one is connected here, another with ${from.peerId}`;
      this.#complain(`twins ${link.peerId}`, text);
      // Neither votes any more. Whoever comes back is let in only when the other has gone.
      link.close(text);
    }
    return null;
  }

  /** Why a process must not be let in as this member. */
  objection(peer: Identity): string | undefined {
    return this.#twins.objection(peer.nodeId, peer.incarnation);
  }

  /** That member is connected with another process under our id, or with one that is. */
  refusedBy(memberId: string, text: string): void {
    if (this.#host.cluster.settings.members.includes(memberId)) this.#twins.refusedBy(memberId, text);
  }

  /** The member itself should know: whoever looks at its log may be the one who can end the other process. */
  warn(link: Link, address: string): void {
    this.#host.transport.call(link, "rival", { address }, tellTimeoutMs).catch(() => {
      // It has gone, and so its place is free for the other.
    });
  }

  /** CALL `rival`: another member tells that a second process is us. */
  warned(from: Link, params: unknown): null {
    const address = (params as { address?: unknown } | null)?.address;
    if (from.role !== "member") return null;
    const where = typeof address === "string" ? address.slice(0, 64) : "an unknown address";
    const { nodeId } = this.#host;
    const text = `another process, at ${where}, says that it is the member ${nodeId} too; ${from.peerId} refused it`;
    this.#twins.rivalSeen(text, this.#host.now().mono);
    this.#complain("rival", text);
    return null;
  }

  /** To be called several times a second. True when the acceptor must begin a recovery wait now. */
  maintain(now: Reading, ready: boolean): boolean {
    // The answers confirm us within a round trip, where heartbeats may take two seconds: after this process was stopped, say.
    if (!this.#twins.votes(now.mono))
      for (const told of this.#links.values()) if (told.state === "told") told.state = "due";
    this.#tellAll();
    return this.#twins.mustBeSilent(now.mono, ready);
  }

  /** Whether this member's acceptor may answer. */
  votes(now: Reading): boolean {
    return this.#twins.votes(now.mono);
  }

  /** We are another incarnation, and every connection ends. */
  restarted(): void {
    this.#links.clear();
    this.#twins.restarted();
  }

  get isTwin(): boolean {
    return this.#twins.isTwin;
  }

  /** What the operator should know. */
  notice(nowMs: number): string | undefined {
    return this.#twins.notice(nowMs);
  }
}
