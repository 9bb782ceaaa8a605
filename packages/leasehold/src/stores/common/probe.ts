import { setTimeout } from "node:timers/promises";
import { backOffMs } from "../../common/back-off.js";
import { decodeEnvelope, encodeEnvelope, sameBytes } from "../../delta/record/envelope.js";
import type { Store, StoreAnswer, StoreCaller } from "../../delta/store.js";
import type { ProbeFinding } from "./contract.js";

/** The register of probes. Its content has no meaning. */
export const probeRegister = "leasehold.probe";

const probeFormat = "leasehold-probe/1";

/** This many writes that are lost without another prober's content in their place are no coincidence. */
const lostMax = 20;

/**
 * The maximum number of runs that another prober disturbed. A run takes milliseconds, or more on a busy
 * machine or if hundreds of processes start at once. Without a limit, a store that returns stale content
 * would make the probe run for ever.
 */
const crowdedMax = 200;

/** Base and bound of the random pause between two runs, ms. The bound doubles each time. */
const pauseMsBase = 25;
const pauseMsMax = 400;

/**
 * Proves that an atomic store implements `replace` correctly, on {@link probeRegister}: it tries the
 * operations that should be refused. Several processes may probe at the same time.
 *
 * Rejects with the store's own error if an operation fails.
 *
 * @param sleep for tests that don't wait.
 */
export async function probeAtomic(
  store: Store,
  signal?: AbortSignal,
  sleep: (ms: number) => Promise<unknown> = setTimeout,
): Promise<readonly ProbeFinding[]> {
  const tries = { lost: 0, crowded: 0 };
  for (;;) {
    signal?.throwIfAborted();
    const verdict = await new AtomicProbe(store, signal).run();
    if (typeof verdict === "object") return verdict;
    tries[verdict] += 1;
    if (tries.lost === lostMax || tries.crowded === crowdedMax)
      return [finding("wrote and read back what it wrote", "never what it had written", false)];
    await sleep(backOffMs({ next: Math.random }, tries.crowded, pauseMsBase, pauseMsMax));
  }
}

/**
 * The findings, or why a run was inconclusive. `crowded`: another prober wrote meanwhile. `lost`: the written
 * content is gone, but not replaced by another prober's.
 */
type Verdict = readonly ProbeFinding[] | "crowded" | "lost";

function finding(tried: string, seen: string, ok: boolean): ProbeFinding {
  return { tried, seen, ok };
}

/** One run over the register. It stops if another prober's write may explain the result of a step. */
class AtomicProbe {
  readonly #store: Store;
  readonly #caller: StoreCaller | undefined;
  readonly #findings: ProbeFinding[] = [];
  #id = "";

  constructor(store: Store, signal: AbortSignal | undefined) {
    this.#store = store;
    this.#caller = signal && { signal };
  }

  async run(): Promise<Verdict> {
    const before = await this.#read();
    const first = this.#content();
    const written = await this.#replace(before, first);
    if (written.kind === "conflict") return whatStands(written.cells[0], before);
    const after = await this.#read();
    if (!isSame(after, first)) return whatStands(after, before);
    this.#note("wrote a cell and read it", "what was written", true);
    await this.#mustRefuse("created a cell that exists", undefined);
    await this.#mustRefuse("replaced a cell that is not what was expected", before ?? this.#content());
    await this.#mustRefuse("wrote with another store's marker", first, `not ${this.#id}`);
    if (this.#findings.some(({ ok }) => !ok)) return this.#findings;
    return this.#race(first);
  }

  /** Two concurrent writes with the same expectation: one of them must win, the other must be refused. */
  async #race(expected: Uint8Array): Promise<Verdict> {
    const contents = [this.#content(this.#store.traits.bytesMax), this.#content(this.#store.traits.bytesMax)];
    const answers = await Promise.all(contents.map((content) => this.#replace(expected, content)));
    const winners = contents.filter((_, index) => answers[index]!.kind === "written");
    if (winners.length === 0) return whatStands(await this.#read(), expected);
    const tried = "replaced one cell twice at the same time";
    if (winners.length > 1) return this.#note(tried, "both were acknowledged", false);
    const after = await this.#read();
    if (!isSame(after, winners[0])) return whatStands(after, expected);
    return this.#note(tried, "one was written, the other refused", true);
  }

  async #mustRefuse(tried: string, expected: Uint8Array | undefined, id = this.#id): Promise<void> {
    const { kind } = await this.#replace(expected, this.#content(), id);
    this.#note(tried, kind === "conflict" ? "it was refused" : "it was written anyway", kind === "conflict");
  }

  #note(tried: string, seen: string, ok: boolean): readonly ProbeFinding[] {
    this.#findings.push(finding(tried, seen, ok));
    return this.#findings;
  }

  async #read(): Promise<Uint8Array | undefined> {
    const answer = known(await this.#store.perform({ op: "read", register: probeRegister }, this.#caller));
    this.#id = answer.id;
    return answer.kind === "cells" ? answer.cells[0] : undefined;
  }

  async #replace(expected: Uint8Array | undefined, next: Uint8Array, id = this.#id): Promise<KnownAnswer> {
    const request = { op: "replace", register: probeRegister, id, expected, next } as const;
    return known(await this.#store.perform(request, this.#caller));
  }

  /** Unique; of exactly `bytes` if given. */
  #content(bytes?: number): Uint8Array {
    const nonce = globalThis.crypto.randomUUID();
    const line = (filler: string) => encodeEnvelope(probeFormat, JSON.stringify({ nonce, filler }));
    return line("-".repeat(bytes === undefined ? 0 : Math.max(0, bytes - line("").length)));
  }
}

/** Whether another prober wrote the content. */
function whatStands(cell: Uint8Array | undefined, before: Uint8Array | undefined): "crowded" | "lost" {
  return !isSame(cell, before) && isProbe(cell) ? "crowded" : "lost";
}

function isProbe(cell: Uint8Array | undefined): boolean {
  if (cell === undefined) return false;
  try {
    decodeEnvelope(probeFormat, cell);
    return true;
  } catch {
    return false;
  }
}

function isSame(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  return one === undefined || other === undefined ? one === other : sameBytes(one, other);
}

type KnownAnswer = Exclude<StoreAnswer, { kind: "failed" }>;

function known(answer: StoreAnswer): KnownAnswer {
  if (answer.kind === "failed") throw answer.error;
  return answer;
}
