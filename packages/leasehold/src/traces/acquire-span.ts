import type { CallTrace } from "../lease/manager/call-trace.js";
import type { JsonValue, Lease } from "../lease/types.js";
import { spanNamedIn } from "./traceparent.js";
import type { SpanContextLike, SpanLike } from "./types.js";

/**
 * The maximum number of links of one span, and of queries to the ground about holders: a counted lease has
 * many.
 */
const linksMax = 8;
const questionsMax = 8;

const questionTimeout = "2s";

interface Ports {
  /** The span in which this participant acquired its lease, if it has one and that call was traced. */
  spanOn(resource: string): SpanContextLike | undefined;
  /** The data of another participant's tenure. */
  dataOf(resource: string, timeout: string): Promise<JsonValue | undefined>;
  granted(lease: Lease): void;
}

/** The span of one call for a lease: it has an event when the call waits, and links to the holders' spans. */
export class AcquireSpan implements CallTrace {
  readonly #span: SpanLike;
  readonly #ports: Ports;
  readonly #linked = new Set<string>();
  readonly #asked = new Set<string>();
  #questions = 0;
  #waits = false;
  #hasEnded = false;

  constructor(span: SpanLike, ports: Ports) {
    this.#span = span;
    this.#ports = ports;
  }

  waits(resource: string, holder?: string): void {
    if (!this.#waits) this.#span.addEvent("wait", holder === undefined ? {} : { "leasehold.holder": holder });
    this.#waits = true;
    const own = this.#ports.spanOn(resource);
    if (own === undefined) void this.#ask(resource, holder);
    else this.#link(own);
  }

  granted(lease: Lease): void {
    this.#ports.granted(lease);
  }

  end(): void {
    this.#hasEnded = true;
    this.#span.end();
  }

  /** Queries each holder once; one whose data has not arrived yet is queried again at the next refusal. */
  async #ask(resource: string, holder = ""): Promise<void> {
    const key = `${resource} ${holder}`;
    if (this.#asked.has(key) || this.#questions >= questionsMax) return;
    this.#questions += 1;
    this.#asked.add(key);
    const found = spanNamedIn(await this.#ports.dataOf(resource, questionTimeout).catch(() => undefined));
    if (found === undefined) this.#asked.delete(key);
    else this.#link(found);
  }

  #link(context: SpanContextLike): void {
    if (this.#hasEnded || this.#linked.has(context.spanId) || this.#linked.size >= linksMax) return;
    this.#linked.add(context.spanId);
    this.#span.addLink({ context });
  }
}
