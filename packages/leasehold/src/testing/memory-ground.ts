import { getOrInsert } from "../common/maps.js";
import { LeaseholdError, LeaseLostError, type LossReason } from "../lease/errors.js";
import type { Clock } from "../common/ports.js";
import type { Detachment, Grant, ReleaseRequest } from "../lease/provider.js";
import { dataField } from "../lease/tenure-data.js";
import type { HolderHint, ResourceHint } from "../lease/types.js";
import { MemoryQueues } from "./memory-queues.js";

/** A participant, as its ground sees it. */
export interface MemoryParticipant {
  readonly holder: string;
  readonly clock: Clock;
  /** A resource that the participant was refused has become free. */
  onFree(resource: string): void;
  /** A test has ended the participant's tenure. */
  onLost(tenure: MemoryTenure, error: LeaseLostError): void;
  /** Another participant asks for the resource, or has broken the lease. */
  onAsked(request: ReleaseRequest): void;
  /** A resource was taken or became free. */
  onChanged(): void;
}

/**
 * One tenure on a {@link MemoryGround}: it ends by the steady clock or the system clock, whichever comes
 * first.
 */
export class MemoryTenure implements Grant {
  readonly resource: string;
  readonly token: bigint;
  readonly owner: MemoryParticipant;
  /** The data for others to read, as JSON. */
  readonly data: string | undefined;
  /** The owner has stopped using it without telling the ground, so the tenure continues for others. */
  abandoned = false;
  /** Whether the tenure was broken; it can then no longer be extended. */
  broken = false;
  /**
   * The pass, if the owner has detached the tenure: it can't be extended, and another participant may take
   * over with the pass.
   */
  pass: string | undefined;
  #endMonotonicMs: number;
  #endWallMs: number;
  #isOver = false;

  constructor(
    resource: string,
    token: bigint,
    owner: MemoryParticipant,
    ttlMs: number,
    data: string | undefined,
  ) {
    this.data = data;
    this.resource = resource;
    this.token = token;
    this.owner = owner;
    this.#endMonotonicMs = owner.clock.monotonicMs() + ttlMs;
    this.#endWallMs = owner.clock.wallMs() + ttlMs;
  }

  get lossReason(): LossReason | undefined {
    return this.broken ? "broken" : undefined;
  }

  /** The remaining time for the owner. */
  remainingMs(): number {
    return this.abandoned ? 0 : this.leftMs();
  }

  /** Whether it is over for everybody else. Once over, it stays over, whatever the clocks do. */
  leftMs(): number {
    if (this.#isOver) return 0;
    const { clock } = this.owner;
    const leftMs = Math.min(this.#endMonotonicMs - clock.monotonicMs(), this.#endWallMs - clock.wallMs());
    if (leftMs > 0) return leftMs;
    this.#isOver = true;
    return 0;
  }

  /** Returns false if it was already over: a tenure is never reopened. */
  extendTo(endMonotonicMs: number, endWallMs: number): boolean {
    if (this.leftMs() === 0 || this.broken || this.pass !== undefined) return false;
    this.#endMonotonicMs = Math.max(this.#endMonotonicMs, endMonotonicMs);
    this.#endWallMs = Math.max(this.#endWallMs, endWallMs);
    return true;
  }

  end(): void {
    this.#isOver = true;
  }
}

/** The shared state of one in-memory cluster's participants: the holders, and the last token. */
export class MemoryGround {
  readonly queues = new MemoryQueues();
  readonly #tenures = new Map<string, MemoryTenure>();
  readonly #refused = new Map<string, Set<MemoryParticipant>>();
  readonly #participants = new Set<MemoryParticipant>();
  readonly #emptied: () => void;
  #lastToken = 0n;
  #lastIncarnation = 0;

  /** @param emptied called when the last participant has left */
  constructor(emptied: () => void = () => undefined) {
    this.#emptied = emptied;
  }

  /** A holder's name for another participant of this name. */
  holderName(name: string): string {
    return `${name}.${++this.#lastIncarnation}`;
  }

  join(participant: MemoryParticipant): void {
    this.#participants.add(participant);
  }

  leave(participant: MemoryParticipant): void {
    this.#participants.delete(participant);
    for (const [resource, refused] of this.#refused) {
      refused.delete(participant);
      if (refused.size === 0) this.#refused.delete(resource);
    }
    this.#sweep();
    if (this.#participants.size === 0) this.#emptied();
  }

  /** The tenure that blocks the resource, if any. */
  find(resource: string): MemoryTenure | undefined {
    const tenure = this.#tenures.get(resource);
    if (tenure === undefined || tenure.leftMs() > 0) return tenure;
    this.#tenures.delete(resource);
    return undefined;
  }

  /**
   * A new tenure, or the blocking one; in that case the participant is notified when the resource becomes
   * free.
   */
  take(resource: string, participant: MemoryParticipant, ttlMs: number, data?: string): MemoryTenure {
    const standing = this.find(resource);
    const isOwnRest = standing?.owner === participant && standing.abandoned;
    if (standing !== undefined && !isOwnRest) {
      getOrInsert(this.#refused, resource, () => new Set()).add(participant);
      return standing;
    }
    const tenure = new MemoryTenure(resource, ++this.#lastToken, participant, ttlMs, data);
    this.#tenures.set(resource, tenure);
    this.#changed();
    return tenure;
  }

  /** A new tenure that replaces a detached one; `undefined` if there is no such tenure. */
  adopt(
    resource: string,
    { token, pass }: Detachment,
    participant: MemoryParticipant,
    ttlMs: number,
    data?: string,
  ): MemoryTenure | undefined {
    const standing = this.find(resource);
    if (standing?.pass !== pass || standing.token !== token || standing.broken) return undefined;
    standing.end();
    const tenure = new MemoryTenure(resource, ++this.#lastToken, participant, ttlMs, data);
    this.#tenures.set(resource, tenure);
    this.#changed();
    return tenure;
  }

  free(tenure: MemoryTenure): void {
    tenure.end();
    const { resource } = tenure;
    if (this.#tenures.get(resource) === tenure) this.#tenures.delete(resource);
    const refused = this.#refused.get(resource);
    this.#refused.delete(resource);
    for (const participant of refused ?? []) participant.onFree(resource);
    this.#changed();
  }

  /** Ends a tenure like a clock fault: its owner is notified, and others can acquire the resource. */
  lose(resource: string): boolean {
    const tenure = this.find(resource);
    if (tenure === undefined) return false;
    tenure.end();
    tenure.owner.onLost(tenure, new LeaseLostError(resource, "clock-fault", "ended by a test"));
    this.free(tenure);
    return true;
  }

  list(prefix: string): ResourceHint[] {
    this.#sweep();
    return [...this.#tenures.values()]
      .filter((tenure) => tenure.resource.startsWith(prefix))
      .map((tenure) => ({ resource: tenure.resource, ...describeTenure(tenure) }));
  }

  /**
   * The number of participants that were refused the resource and have not yet been notified that it is free.
   */
  waiting(resource: string): number {
    return this.#refused.get(resource)?.size ?? 0;
  }

  #changed(): void {
    for (const participant of this.#participants) participant.onChanged();
  }

  #sweep(): void {
    for (const resource of this.#tenures.keys()) this.find(resource);
  }
}

/** The error of a participant that cannot reach the others. */
export function cutOff(holder: string): LeaseholdError {
  return new LeaseholdError("NO_QUORUM", `${holder} is cut off from its cluster`);
}

export function describeTenure(tenure: MemoryTenure): HolderHint {
  return {
    state: "held",
    holder: tenure.owner.holder,
    token: tenure.token,
    remainingMs: tenure.leftMs(),
    confirmed: true,
    ...dataField(tenure.data),
  };
}
