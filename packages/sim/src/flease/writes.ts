import { Kind } from "leasehold/inner/flease/protocol/message.js";
import type { Message } from "leasehold/inner/flease/protocol/message.js";
import type { Observer, SentWrite, WriteLookup } from "./stage/observer.js";
import type { NodeView } from "./stage/node.js";

/** The book of all writes ever sent, as each was sent first. */
export class Writes implements Observer, WriteLookup {
  /** By owner, ballot number and sequence. */
  readonly #byOwner = new Map<string, Map<number, (SentWrite | undefined)[]>>();

  find(owner: string, number: number, sequence: number): SentWrite | undefined {
    return this.#byOwner.get(owner)?.get(number)?.[sequence];
  }

  sent(from: NodeView, _to: number, message: Message): void {
    if (message.kind !== Kind.write && message.kind !== Kind.acquire) return;
    const { owner, number, sequence, until, duration } = message;
    let byNumber = this.#byOwner.get(owner);
    if (byNumber === undefined) this.#byOwner.set(owner, (byNumber = new Map()));
    let writes = byNumber.get(number);
    if (writes === undefined) byNumber.set(number, (writes = []));
    if (writes[sequence] !== undefined) return;
    const end = from.look().mono + duration;
    writes[sequence] = { until, duration, end, fast: message.kind === Kind.acquire };
  }
}
