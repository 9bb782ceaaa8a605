import { encodeEnvelope, sameBytes } from "../../delta/record/envelope.js";
import type { Store, StoreAnswer } from "../../delta/store.js";
import type { ProbeFinding } from "./contract.js";

/** The register that probes use. Nobody waits for it, and what stands in it means nothing. */
export const probeRegister = "leasehold.probe";

/**
 * Another process that probes at the same time is in the way for milliseconds; this often in a row it is no
 * coincidence.
 */
const triesMax = 20;

/** Longest random pause between two tries, ms. */
const pauseMsMax = 50;

/**
 * Proves that an atomic store does what `replace` promises, on {@link probeRegister}: what should be refused
 * is tried, not believed. Several processes may do so at once.
 *
 * Rejects with the store's own error when it answers that it cannot.
 */
export async function probeAtomic(store: Store, signal?: AbortSignal): Promise<readonly ProbeFinding[]> {
  for (let tries = 1; ; tries += 1) {
    signal?.throwIfAborted();
    const findings = await new AtomicProbe(store, signal).run();
    if (findings !== undefined) return findings;
    if (tries === triesMax)
      return [finding("wrote and read back what it wrote", "never what it had written", false)];
    await new Promise((resolve) => setTimeout(resolve, Math.random() * pauseMsMax));
  }
}

function finding(tried: string, seen: string, ok: boolean): ProbeFinding {
  return { tried, seen, ok };
}

/** One run over the register. A step that another prober's write explains ends it without a verdict. */
class AtomicProbe {
  readonly #store: Store;
  readonly #signal: AbortSignal | undefined;
  readonly #findings: ProbeFinding[] = [];
  #id = "";

  constructor(store: Store, signal: AbortSignal | undefined) {
    this.#store = store;
    this.#signal = signal;
  }

  async run(): Promise<readonly ProbeFinding[] | undefined> {
    const before = await this.#read();
    const first = this.#content();
    if ((await this.#replace(before, first)).kind !== "written" || !(await this.#holds(first)))
      return undefined;
    this.#note("wrote a cell and read it", "what was written", true);
    await this.#mustRefuse("created a cell that exists", undefined);
    await this.#mustRefuse("replaced a cell that is not what was expected", before ?? this.#content());
    await this.#mustRefuse("wrote with another store's marker", first, `not ${this.#id}`);
    if (this.#findings.some(({ ok }) => !ok)) return this.#findings;
    return this.#race(first);
  }

  /** Two writes at once that expect the same: one of them must win, the other must be told so. */
  async #race(expected: Uint8Array): Promise<readonly ProbeFinding[] | undefined> {
    const contents = [this.#content(this.#store.traits.bytesMax), this.#content(this.#store.traits.bytesMax)];
    const answers = await Promise.all(contents.map((content) => this.#replace(expected, content)));
    const winners = contents.filter((_, index) => answers[index]!.kind === "written");
    if (winners.length === 0) return undefined;
    const tried = "replaced one cell twice at the same time";
    if (winners.length > 1) return this.#note(tried, "both were told that they had written it", false);
    if (!(await this.#holds(winners[0]!))) return undefined;
    return this.#note(tried, "one was written, the other refused", true);
  }

  async #mustRefuse(tried: string, expected: Uint8Array | undefined, id = this.#id): Promise<void> {
    const { kind } = await this.#replace(expected, this.#content(), id);
    this.#note(
      tried,
      kind === "conflict" ? "it was refused" : "it was written all the same",
      kind === "conflict",
    );
  }

  #note(tried: string, seen: string, ok: boolean): readonly ProbeFinding[] {
    this.#findings.push(finding(tried, seen, ok));
    return this.#findings;
  }

  async #holds(content: Uint8Array): Promise<boolean> {
    const cell = await this.#read();
    return cell !== undefined && sameBytes(cell, content);
  }

  async #read(): Promise<Uint8Array | undefined> {
    const answer = known(await this.#store.perform({ op: "read", register: probeRegister }, this.#signal));
    this.#id = answer.id;
    return answer.kind === "cells" ? answer.cells[0] : undefined;
  }

  async #replace(expected: Uint8Array | undefined, next: Uint8Array, id = this.#id): Promise<KnownAnswer> {
    const request = { op: "replace", register: probeRegister, id, expected, next } as const;
    return known(await this.#store.perform(request, this.#signal));
  }

  /** Never the same twice; of exactly `bytes` if it says so. */
  #content(bytes?: number): Uint8Array {
    const nonce = globalThis.crypto.randomUUID();
    const line = (filler: string) => encodeEnvelope("leasehold-probe/1", JSON.stringify({ nonce, filler }));
    return line("-".repeat(bytes === undefined ? 0 : Math.max(0, bytes - line("").length)));
  }
}

type KnownAnswer = Exclude<StoreAnswer, { kind: "failed" }>;

function known(answer: StoreAnswer): KnownAnswer {
  if (answer.kind === "failed") throw answer.error;
  return answer;
}
