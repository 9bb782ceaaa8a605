import { LeaseholdError } from "../lease/errors.js";
import type { Timer, Timers } from "../lease/ports.js";
import type { Counters } from "./counters.js";
import type { Link } from "./link.js";
import type { AnswerFrame, CallFrame } from "./side-frames.js";
import type { TransportHandler } from "./transport-handler.js";

/** Calls of one peer that are being answered at the same time, watches among them; a further one is answered with an error. */
const RUNNING_CALLS_MAX = 64;

const ERROR_TEXT_LENGTH_MAX = 4096;

interface PendingCall {
  readonly link: Link;
  readonly timer: Timer;
  readonly settle: (answer: AnswerFrame) => void;
}

/** Both sides of the rare questions beside the protocol: those we asked, and those we are asked. */
export class Calls {
  readonly #handler: TransportHandler;
  readonly #counters: Counters;
  readonly #timers: Timers;
  readonly #callsMax: number;
  readonly #pending = new Map<number, PendingCall>();
  readonly #running = new WeakMap<Link, number>();
  #lastId = 0;

  constructor(handler: TransportHandler, counters: Counters, timers: Timers, callsMax: number) {
    this.#handler = handler;
    this.#counters = counters;
    this.#timers = timers;
    this.#callsMax = callsMax;
  }

  call(link: Link, method: string, params: unknown, timeoutMs: number): Promise<unknown> {
    if (this.#pending.size >= this.#callsMax) {
      return unreachable(link, `${this.#callsMax} calls already wait for an answer`);
    }
    this.#lastId = (this.#lastId + 1) >>> 0;
    const id = this.#lastId;
    if (!link.sendCall({ id, method, params })) {
      return unreachable(link, link.open ? "the call has no room" : "the link is closed");
    }
    this.#counters["calls.sent"]++;
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

  /** An answer that nobody waits for any longer, or that comes from another than was asked, is dropped. */
  answered(link: Link, answer: AnswerFrame): void {
    const pending = this.#pending.get(answer.id);
    if (pending === undefined || pending.link !== link) {
      this.#counters["answers.dropped"]++;
      return;
    }
    this.#pending.delete(answer.id);
    pending.timer.cancel();
    pending.settle(answer);
  }

  /** Ends what waits for this link, or for all. */
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
      this.#counters["calls.refused"]++;
      const error = new LeaseholdError(
        "UNREACHABLE",
        `${RUNNING_CALLS_MAX} calls are being answered already`,
      );
      this.#send(link, { id: call.id, error });
      return;
    }
    this.#running.set(link, running + 1);
    void this.#answer(link, call);
  }

  async #answer(link: Link, call: CallFrame): Promise<void> {
    const { id } = call;
    try {
      this.#send(link, { id, value: await this.#handler.answer(link, call.method, call.params) });
    } catch (error) {
      this.#send(link, { id, error: asLeaseholdError(error) });
    } finally {
      this.#running.set(link, this.#running.get(link)! - 1);
    }
  }

  #send(link: Link, answer: AnswerFrame): void {
    if (link.sendAnswer(answer)) this.#counters["calls.answered"]++;
    else this.#counters["answers.dropped"]++;
  }
}

function unreachableError(link: Link, why: string): LeaseholdError {
  return new LeaseholdError("UNREACHABLE", `${link.peerId} at ${link.address} did not answer: ${why}`);
}

function unreachable(link: Link, why: string): Promise<never> {
  return Promise.reject(unreachableError(link, why));
}

/** Whatever it was, it has to fit into an answer. */
function asLeaseholdError(error: unknown): LeaseholdError {
  const message = (error instanceof Error ? error.message : String(error)).slice(0, ERROR_TEXT_LENGTH_MAX);
  return new LeaseholdError(error instanceof LeaseholdError ? error.code : "UNREACHABLE", message);
}
