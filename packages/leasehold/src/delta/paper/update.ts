import type { FarmView } from "../lease-protocol.js";
import { type BothClocks, elapsedMs } from "../../common/both-clocks.js";
import type { Protocol } from "../effects.js";
import type { StoreAnswer, StoreRequest } from "../store.js";

/** The action for one store whose cell has this content. */
export type Step =
  | { readonly kind: "write"; readonly next: Uint8Array }
  /** The store already has the value, or a greater one. */
  | { readonly kind: "done" }
  /** The store's content must not be touched. */
  | { readonly kind: "refuse" };

export interface Update {
  readonly register: string;
  /** The assumed content of each cell, by store index: a wrong assumption costs a round. Kept up to date. */
  readonly contents: (Uint8Array | undefined)[];
  /**
   * Called for each new content. For a slotted store only `write` is possible: the writer has its own slot.
   */
  readonly step: (store: number, content: Uint8Array | undefined) => Step;
  /** Writes where possible, even without a majority. */
  readonly bestEffort?: boolean;
  /** Slotted stores need not announce the write. */
  readonly quiet?: boolean;
  readonly begun: BothClocks;
  /** Counted from `begun`, ms. */
  readonly timeoutMs: number;
}

export interface Updated {
  /** `done`: on a majority. `refused`: too many stores refused. `unanswered`: neither in time. */
  readonly kind: "done" | "refused" | "unanswered";
  readonly failures: readonly StoreAnswer[];
  readonly ended: BothClocks;
}

/** Other processes may write between a read and a write. A process that loses this often gives up. */
const roundsMax = 12;

/**
 * Applies `step` at a majority of the stores: compare-and-set on atomic ones, retried when another process
 * was faster; a plain write into the writer's slot on slotted ones. It never waits for a particular store.
 *
 * The paper's write (section 3; Fig. 2, line 9) has no rounds: it ends when a majority has acknowledged it.
 * So a store that acknowledges an earlier round counts like one that acknowledges this round. Its write took
 * effect since `begun`, over a content that `step` had allowed: compare-and-set ensures that. Between rounds
 * `step` may change its result only for stores that have not written it yet (`MayReplace`). Each store counts
 * once, by its first acknowledgement, however often it was asked.
 */
export function* update(farm: FarmView, wanted: Update): Protocol<Updated> {
  const { register, contents, step, begun, timeoutMs } = wanted;
  const states: ("done" | "refused" | "failed" | undefined)[] = [];
  const failures: StoreAnswer[] = [];
  const count = (state: "done" | "refused") => states.filter((one) => one === state).length;
  let ended = begun;
  let isOver = false;
  for (let round = 0; round < roundsMax; round += 1) {
    const requests = Array.from({ length: farm.size }, (_, store) => requestFor(store));
    if (count("done") >= farm.majority) return end("done");
    if (farm.size - count("refused") < farm.majority && wanted.bestEffort !== true) return end("refused");
    const leftMs = timeoutMs - elapsedMs(begun, ended);
    if (leftMs <= 0 || requests.every((request) => request === undefined)) break;
    const late = (store: number, answer: StoreAnswer) => {
      if (answer.kind === "written" && !isOver) take(store, requests[store], answer);
    };
    const { answers, now } = yield { kind: "ask", requests, enough: roundIsOver, timeoutMs: leftMs, late };
    ended = now;
    for (const [store, answer] of answers.entries()) take(store, requests[store], answer);

    function roundIsOver(soFar: readonly (StoreAnswer | undefined)[]): boolean {
      const open = soFar.filter((_, store) => states[store] === undefined);
      const written = open.filter((answer) => answer?.kind === "written").length;
      const conflicts = open.filter((answer) => answer?.kind === "conflict").length;
      const doneNow = count("done") + written;
      if (doneNow >= farm.majority) return true;
      // A new round is worthwhile once the stores that can be asked again make up the missing ones.
      if (conflicts > 0 && doneNow + conflicts >= farm.majority) return true;
      return open.every((answer) => answer !== undefined);
    }
  }
  return end("unanswered");

  function end(kind: Updated["kind"]): Updated {
    isOver = true;
    return { kind, failures, ended };
  }

  function requestFor(store: number): StoreRequest | undefined {
    if (states[store] !== undefined) return undefined;
    const expected = contents[store];
    const next = step(store, expected);
    if (next.kind !== "write") {
      states[store] = next.kind === "done" ? "done" : "refused";
      return undefined;
    }
    if (farm.kindOf(store) === "slotted")
      return { op: "put", register, next: next.next, ...(wanted.quiet === true && { quiet: true }) };
    return { op: "replace", register, id: farm.idOf(store), expected, next: next.next };
  }

  function take(store: number, request: StoreRequest | undefined, answer: StoreAnswer | undefined): void {
    if (answer === undefined || states[store] !== undefined) return;
    if (request === undefined || request.op === "read" || request.op === "list") return;
    if (answer.kind === "failed" || answer.id !== farm.idOf(store)) {
      states[store] = "failed";
      failures.push(answer);
    } else if (answer.kind === "written") {
      states[store] = "done";
      contents[store] = request.next;
    } else if (answer.kind === "conflict") contents[store] = answer.cells[0];
  }
}
