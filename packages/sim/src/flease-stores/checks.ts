import { holdIsValid } from "leasehold/inner/flease/protocol/expiry.js";
import type { Grant } from "leasehold/inner/lease/provider.js";
import { decodeEntry } from "leasehold/inner/flease/stores/codec.js";
import type { EntryRecord } from "leasehold/inner/flease/stores/record.js";
import { entryRegister } from "leasehold/inner/flease/stores/registers.js";
import { fleaseTokens } from "../flease/checkers/tokens.js";
import { Exclusion } from "../kit/checkers/exclusion.js";
import type { Tokens } from "../kit/checkers/tokens.js";
import type { FleasePeer } from "leasehold/inner/flease/peer.js";
import type { Reading } from "leasehold/inner/flease/protocol/clock.js";
import type { Ground } from "./ground.js";

/** A process that may hold something. */
export interface Participant {
  readonly name: string;
  readonly isDown: boolean;
  readonly peer: FleasePeer | undefined;
  /** Its present reading, without a trace. */
  peek(): Reading;
}

interface Tenure {
  readonly client: Participant;
  readonly resource: string;
  readonly token: number;
}

/** Checks the invariants after every event. */
export class StoreChecks {
  readonly #ground: Ground;
  /** By resource: tenures that a program believes in. */
  readonly #tenures = new Map<string, Tenure[]>();
  readonly #newest = new Map<string, Tenure>();
  readonly #exclusion: Exclusion<Tenure>;
  readonly #tokens: Tokens<number>;
  /** Tenures that have ended: `owner/token`. */
  readonly #ended = new Set<string>();

  /** Looked at after every event, and seldom changed. */
  readonly #decoded = new WeakMap<Uint8Array, EntryRecord>();

  constructor(ground: Ground) {
    this.#ground = ground;
    this.#tokens = fleaseTokens(ground.report);
    this.#exclusion = new Exclusion<Tenure>(
      {
        isHeld: ({ client, resource }) => this.#holds(client, resource),
        nameOf: ({ client, token }) => `${client.name} (token ${token})`,
      },
      (text) => ground.report("I1", text),
    );
  }

  begins(client: Participant, grant: Grant): void {
    const { resource } = grant;
    const token = Number(grant.token);
    const tenure = { client, resource, token };
    this.#ground.counters.tenures += 1;
    const before = this.#newest.get(resource);
    if (before !== undefined && before.client.isDown && before.client !== client)
      this.#ground.counters.takeovers += 1;
    this.#tokens.given({ resource, token, who: client.name });
    if (this.#ended.has(`${client.peer!.proposer.owner}/${token}`))
      this.#ground.report(
        "I12",
        `${client.name} holds ${resource} by the ballot ${token} that it had given up`,
      );
    this.#newest.set(resource, tenure);
    this.#tenures.set(resource, [...(this.#tenures.get(resource) ?? []), tenure]);
  }

  ends(client: Participant, resource: string): void {
    const tenures = this.#tenures.get(resource) ?? [];
    for (const { token } of tenures.filter((tenure) => tenure.client === client))
      this.#ended.add(`${client.peer!.proposer.owner}/${token}`);
    this.#tenures.set(
      resource,
      tenures.filter((tenure) => tenure.client !== client),
    );
  }

  afterEvent(): void {
    for (const [resource, tenures] of this.#tenures) {
      const up = tenures.filter(({ client }) => !client.isDown);
      if (up.length !== tenures.length) this.#tenures.set(resource, up);
      this.#exclusion.look(resource, up);
      for (const { client } of up) if (this.#holds(client, resource)) this.#checkBacking(client, resource);
    }
  }

  #holds(client: Participant, resource: string): boolean {
    const instance = client.peer!.proposer.instanceOf(resource);
    return (
      instance?.holding === true &&
      holdIsValid(instance.holdExpiresWallMs, instance.holdExpiresMonoMs, client.peek())
    );
  }

  /**
   * I4: a majority of the stores, including stores that have forgotten it since, got the entry that a holder
   * relies on.
   */
  #checkBacking(client: Participant, resource: string): void {
    const instance = client.peer!.proposer.instanceOf(resource)!;
    const owner = client.peer!.proposer.owner;
    const backing = this.#ground.stores.filter(({ forgotAtMs }, store) => {
      if (forgotAtMs > this.#ground.nowMs - 2 * this.#ground.plan.settings.waitWallMs) return true;
      const entry = this.#entryIn(store, resource);
      if (entry === undefined) return false;
      return (
        entry.leaseOwner === owner &&
        !entry.released &&
        entry.leaseExpiresWallMs >= instance.holdExpiresWallMs
      );
    });
    if (2 * backing.length > this.#ground.stores.length) return;
    this.#ground.report("I4", `${client.name} holds ${resource} by ${backing.length} stores only`);
  }

  #entryIn(store: number, resource: string): EntryRecord["entry"] | undefined {
    const [content] = this.#ground.stores[store]!.cells(entryRegister(resource));
    if (content === undefined) return undefined;
    let record = this.#decoded.get(content);
    if (record === undefined) this.#decoded.set(content, (record = decodeEntry(content)));
    return record.entry;
  }
}
