import { LeaseholdError } from "../../../lease/errors.js";
import type { Timer, Timers } from "../../../common/ports.js";
import type { Counters } from "./counters.js";
import type { Link } from "./link.js";
import type { AnswerFrame, CallFrame } from "../wire/admin-frames.js";
import type { TransportHandler } from "./transport-handler.js";

/** Upper bound of concurrent calls per peer, including watches; further calls get an error. */
const RUNNING_CALLS_MAX = 64;

/**
 * Upper bound of pending calls to one peer: more than the peer runs at a time, because answers are in flight
 * for a while. The bound is per peer, so that an unresponsive one takes no room from others.
 */
const ASKED_CALLS_MAX = 256;

/**
 * One shared error: a read may ask for thousands of refusals, and a stack trace for each would dominate the
 * cost.
 */
const tooManyCalls = new LeaseholdError(
  "UNREACHABLE",
  `${RUNNING_CALLS_MAX} calls are being answered already`,
);

const ERROR_TEXT_LENGTH_MAX = 4096;

interface PendingCall {
  readonly link: Link;
  readonly timer: Timer;
  readonly settle: (answer: AnswerFrame) => void;
}

/** Both directions of the infrequent calls outside the protocol: those we make and those we answer. */
export class Calls {
  readonly #handler: Pick<TransportHandler, "calls">;
  readonly #counters: Counters;
  readonly #timers: Timers;
  readonly #pending = new Map<number, PendingCall>();
  /** Pending calls for each link. */
  readonly #asked = new WeakMap<Link, number>();
  readonly #running = new WeakMap<Link, number>();
  #lastId = 0;

  constructor(handler: Pick<TransportHandler, "calls">, counters: Counters, timers: Timers) {
    this.#handler = handler;
    this.#counters = counters;
    this.#timers = timers;
  }

  call(link: Link, method: string, params: unknown, timeoutMs: number): Promise<unknown> {
    const asked = this.#asked.get(link) ?? 0;
    if (asked >= ASKED_CALLS_MAX)
      return unreachable(link, `${ASKED_CALLS_MAX} calls already wait for its answer`);
    this.#lastId = (this.#lastId + 1) >>> 0;
    const id = this.#lastId;
    if (!link.sendCall({ id, method, params })) {
      return unreachable(link, link.open ? "the call has no room" : "the link is closed");
    }
    this.#counters["calls.sent"] += 1;
    this.#asked.set(link, asked + 1);
    return new Promise((resolve, reject) => {
      const timer = this.#timers.after(timeoutMs, () => {
        this.answered(link, { id, error: unreachableError(link, `no answer within ${timeoutMs} ms`) });
      });
      const settle = (answer: AnswerFrame): void => {
        if (answer.error === undefined) resolve(answer.value);
        else reject(answer.error);
      };
      this.#pending.set(id, { link, timer, settle });
    });
  }

  /** Drops answers to calls that have ended, and answers from a peer that was not asked. */
  answered(link: Link, answer: AnswerFrame): void {
    const pending = this.#pending.get(answer.id);
    if (pending === undefined || pending.link !== link) {
      this.#counters["answers.dropped"] += 1;
      return;
    }
    this.#pending.delete(answer.id);
    this.#asked.set(link, this.#asked.get(link)! - 1);
    pending.timer.cancel();
    pending.settle(answer);
  }

  /** Fails pending calls of this link, or of all. */
  fail(link: Link | undefined, error: (link: Link) => LeaseholdError): void {
    for (const [id, pending] of this.#pending) {
      if (link === undefined || pending.link === link) {
        this.answered(pending.link, { id, error: error(pending.link) });
      }
    }
  }

  linkClosed(link: Link, reason: string): void {
    this.fail(link, () => unreachableError(link, reason));
  }

  called(link: Link, call: CallFrame): void {
    const running = this.#running.get(link) ?? 0;
    if (running >= RUNNING_CALLS_MAX) {
      this.#counters["calls.refused"] += 1;
      this.#send(link, { id: call.id, error: tooManyCalls });
      return;
    }
    this.#running.set(link, running + 1);
    void this.#answer(link, call);
  }

  async #answer(link: Link, call: CallFrame): Promise<void> {
    const { id } = call;
    try {
      const answer = this.#handler.calls.answer(link, call.method, call.params);
      this.#send(link, { id, value: await answer });
    } catch (error) {
      // A call refused at once counts until this turn ends, which bounds the refusals per read.
      await undefined;
      this.#send(link, { id, error: asLeaseholdError(error) });
    } finally {
      this.#running.set(link, this.#running.get(link)! - 1);
    }
  }

  #send(link: Link, answer: AnswerFrame): void {
    if (link.sendAnswer(answer)) this.#counters["calls.answered"] += 1;
    else this.#counters["answers.dropped"] += 1;
  }
}

function unreachableError(link: Link, why: string): LeaseholdError {
  return new LeaseholdError("UNREACHABLE", `${link.peerId} at ${link.address} did not answer: ${why}`);
}

function unreachable(link: Link, why: string): Promise<never> {
  return Promise.reject(unreachableError(link, why));
}

/** Any error must fit into an answer. */
function asLeaseholdError(error: unknown): LeaseholdError {
  const message = (error instanceof Error ? error.message : String(error)).slice(0, ERROR_TEXT_LENGTH_MAX);
  return new LeaseholdError(error instanceof LeaseholdError ? error.code : "UNREACHABLE", message);
}
