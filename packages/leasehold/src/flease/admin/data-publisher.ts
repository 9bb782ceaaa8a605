import type { CellMap } from "../protocol/cells.js";

/** Timeout for a member to confirm stored data, ms. */
const answerMsMax = 5_000;

/**
 * Retry delay for a member that has not stored the data, because it is recovering or does not know the lease,
 * ms.
 */
const retryMs = 1_000;

/**
 * Concurrent calls. After a lost connection all data is sent again; other calls must get through in between.
 */
const callsMax = 32;

/** Access to members, by index. */
export interface DataMembers {
  /** The connection, for comparison: data is sent again on a new one. */
  link(member: number): object | undefined;
  ask(member: number, method: string, params: object, timeoutMs: number): Promise<unknown>;
  nowMs(): number;
}

/** A tenure of this participant, and the connections that know its data. */
interface Tenure {
  readonly resource: string;
  readonly token: bigint;
  readonly data: string;
  readonly storedBy: Map<number, object>;
  /** Earliest time of the next attempt (steady). */
  dueMs: number;
}

/**
 * Sends the public data of a tenure to the members of its resource's cell: once it is granted, again over
 * each new connection, and until they store it. Safety does not depend on it, and it never waits for an
 * answer.
 */
export class DataPublisher {
  readonly #cells: CellMap;
  readonly #members: DataMembers;
  readonly #tenures = new Map<string, Tenure>();
  /** Tenures that some connected member may not know. */
  readonly #unstored = new Set<Tenure>();
  #calls = 0;

  constructor(cells: CellMap, members: DataMembers) {
    this.#cells = cells;
    this.#members = members;
  }

  publish(resource: string, token: bigint, data: string): void {
    this.forget(resource);
    const tenure = { resource, token, data, storedBy: new Map<number, object>(), dueMs: -Infinity };
    this.#tenures.set(resource, tenure);
    this.#unstored.add(tenure);
    if (this.#calls < callsMax) this.#go(tenure);
  }

  /** The tenure has ended: members drop its data with the lease. */
  forget(resource: string): void {
    const tenure = this.#tenures.get(resource);
    if (tenure === undefined) return;
    this.#tenures.delete(resource);
    this.#unstored.delete(tenure);
  }

  /** A member has connected. */
  connected(): void {
    for (const tenure of this.#tenures.values()) {
      tenure.dueMs = -Infinity;
      this.#unstored.add(tenure);
    }
  }

  /** Call several times a second. */
  maintain(): void {
    const nowMs = this.#members.nowMs();
    for (const tenure of this.#unstored) {
      if (this.#calls >= callsMax || nowMs < tenure.dueMs) return;
      this.#go(tenure);
    }
  }

  #go(tenure: Tenure): void {
    // Tenures that wait for a retry come last.
    this.#unstored.delete(tenure);
    const missing = this.#missing(tenure);
    if (missing.length === 0) return;
    tenure.dueMs = this.#members.nowMs() + retryMs;
    this.#unstored.add(tenure);
    for (const [member, link] of missing) void this.#call(tenure, member, link);
  }

  /** The connected members of its cell that lack the data. */
  #missing({ resource, storedBy }: Tenure): (readonly [member: number, link: object])[] {
    return this.#cells.of(resource).members.flatMap((member) => {
      const link = this.#members.link(member);
      return link === undefined || storedBy.get(member) === link ? [] : [[member, link] as const];
    });
  }

  async #call(tenure: Tenure, member: number, link: object): Promise<void> {
    this.#calls += 1;
    const { resource, token, data, storedBy } = tenure;
    try {
      const params = { resource, token: Number(token), data };
      if ((await this.#members.ask(member, "data", params, answerMsMax)) === true) storedBy.set(member, link);
    } catch {
      // The call is retried, or made on the member's next connection.
    }
    this.#calls -= 1;
    if (this.#missing(tenure).length === 0) this.#unstored.delete(tenure);
    this.maintain();
  }
}
