import type { World } from "../../common/ports.js";
import type { LeaseholdError } from "../../lease/errors.js";
import type { Link } from "./transport/link.js";
import type { CallHandler } from "./transport/transport-handler.js";
import type { Transport } from "./transport/transport.js";

/** Time after its start during which a participant waits for a connection that it needs, ms. */
const firstLinksMs = 500;
/** Polling interval meanwhile. */
const firstLinkLookMs = 5;

/** The participant, as seen by its calls to members. */
export interface MemberCallsHost {
  readonly ended: AbortSignal;
  readonly transport: Transport;
  /** Answers calls of a member to itself. */
  readonly calls: CallHandler;
  link(member: number): Link | undefined;
  whyUnlinked(member: number): LeaseholdError;
}

/** Makes calls outside the protocol to members, including this participant. */
export class MemberCalls {
  readonly #node: MemberCallsHost;
  readonly #world: World;
  readonly #startedMono: number;

  constructor(node: MemberCallsHost, world: World) {
    this.#node = node;
    this.#world = world;
    this.#startedMono = world.clock.monotonicMs();
  }

  /** @throws LeaseholdError without an answer in time; or the member's error */
  async ask(member: number, method: string, params: object, timeoutMs: number): Promise<unknown> {
    const node = this.#node;
    const link = node.link(member) ?? (await this.#firstLink(member));
    if (link === undefined) throw node.whyUnlinked(member);
    if (link === node.transport.loopback) return node.calls.answer(link, method, params);
    return node.transport.call(link, method, params, timeoutMs);
  }

  /**
   * A client is open as soon as a majority is connected: the other members get a moment before they count as
   * missing.
   */
  async #firstLink(member: number): Promise<Link | undefined> {
    const { clock, timers } = this.#world;
    const untilMono = this.#startedMono + firstLinksMs;
    while (!this.#node.ended.aborted && clock.monotonicMs() < untilMono) {
      await new Promise<void>((resolve) => timers.after(firstLinkLookMs, resolve));
      if (this.#node.link(member) !== undefined) break;
    }
    return this.#node.link(member);
  }
}
