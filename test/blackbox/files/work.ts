import { setTimeout as sleep } from "node:timers/promises";
import type { Xorshift } from "../../../packages/leasehold/src/common/xorshift.js";
import { between, pick } from "../plan.js";
import type { CallJournal } from "./call-journal.js";
import type { CallOutcome, CallResult, FileCall } from "./calls.js";
import type { NodeClient } from "./node-client.js";
import { blockBytes } from "./settings.js";

/** The length of each text. No two texts written are the same. */
export const textBytes = 8;

/** Files with two places in two blocks. Any worker may overwrite them at any time. */
export const placeFiles = Array.from({ length: 24 }, (_, index) => `places/${index + 1}`);
export const placeOffsets = [0, blockBytes];
/**
 * The number of files that get every call except a rename, and the number of calls after which a new file
 * replaces one of them.
 */
const mixedFiles = 4;
const callsPerMixedFile = 60;
/** Files that a single worker writes and renames, from one of these names to the next. */
const movedFiles = 3;
export const namesOfMoved = 4;

const workers = { places: 10, mixed: 4, pairs: 1 };

/**
 * After this time a worker goes on to other work; an answer that comes later is still written to the journal.
 */
const patienceMs = 600;
const pauseMsMax = 30;
const pauseOfMoverMsMax = 200;
/** The share of renames before which the file gets a new text. */
const rewrittenShare = 0.3;

export interface WorkOptions {
  readonly nodes: readonly NodeClient[];
  readonly journal: CallJournal;
  readonly random: Xorshift;
}

/** Workers that call the files, each call at a random node, and write the answers to a journal. */
export class FileWork {
  readonly #options: WorkOptions;
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #mixed = Array.from({ length: mixedFiles }, (_, index) => ({ name: index, calls: 0 }));
  readonly #moved = Array.from({ length: movedFiles }, () => 0);
  readonly #paths = new Set<string>();
  #texts = 0;
  #mixedNames = mixedFiles;

  constructor(options: WorkOptions) {
    this.#options = options;
  }

  /** Resolves when every place has a text; the sizes of the files are fixed from then on. */
  async prepare(): Promise<void> {
    for (const path of placeFiles) {
      await this.#untilDone({ kind: "create", path });
      for (const offset of placeOffsets)
        await this.#untilDone({ kind: "write", path, offset, text: this.#newText() });
    }
  }

  async run(stop: AbortSignal): Promise<void> {
    const { places, mixed, pairs } = workers;
    await Promise.all([
      ...Array.from({ length: places }, () => this.#often(stop, () => this.#callOfPlace())),
      ...Array.from({ length: mixed }, () => this.#often(stop, () => this.#mixedCall())),
      ...Array.from({ length: pairs }, () => this.#often(stop, () => this.#readPair())),
      ...this.#moved.map((_, index) => this.#move(index, stop)),
    ]);
  }

  /** Reads each file at every node after all faults are over: every node must have every file. */
  async finish(): Promise<void> {
    await Promise.all(this.#underWay);
    for (const path of this.#paths) {
      const place = placeFiles.includes(path);
      for (const node of this.#options.nodes)
        for (const offset of place ? placeOffsets : [0])
          await this.#untilDone({ kind: "read", path, offset, length: place ? textBytes : blockBytes }, node);
      await this.#untilDone({ kind: "sync", path });
    }
  }

  async #often(stop: AbortSignal, work: () => Promise<unknown>): Promise<void> {
    while (!stop.aborted) {
      await Promise.race([work(), sleep(patienceMs)]);
      await sleep(between(0, pauseMsMax, this.#options.random));
    }
  }

  #callOfPlace(): Promise<unknown> {
    const { random } = this.#options;
    const place = { path: pick(placeFiles, random), offset: pick(placeOffsets, random) };
    return random.next() < 0.5
      ? this.#call({ kind: "read", ...place, length: textBytes })
      : this.#call({ kind: "write", ...place, text: this.#newText() });
  }

  #mixedCall(): Promise<unknown> {
    const { random } = this.#options;
    const file = pick(this.#mixed, random);
    file.calls += 1;
    if (file.calls > callsPerMixedFile) {
      file.name = this.#mixedNames++;
      file.calls = 0;
    }
    const path = `mixed/${file.name}`;
    const at = random.next();
    const offset = textBytes * Math.floor(random.next() * 4);
    if (at < 0.4) return this.#call({ kind: "read", path, offset: 0, length: blockBytes });
    if (at < 0.5) return this.#call({ kind: "stat", path });
    if (at < 0.6) return this.#call({ kind: "create", path });
    if (at < 0.8) return this.#call({ kind: "append", path, text: this.#newText() });
    if (at < 0.9) return this.#call({ kind: "write", path, offset, text: this.#newText() });
    return this.#call(at < 0.95 ? { kind: "truncate", path, size: offset } : { kind: "remove", path });
  }

  /** The only writer of these files. After an uncertain call it abandons the file and begins a new one. */
  async #move(index: number, stop: AbortSignal): Promise<void> {
    const { random } = this.#options;
    let text = "";
    for (let at = 0; !stop.aborted;) {
      const [path, to] = [this.#nameOfMoved(index, at), this.#nameOfMoved(index, at + 1)];
      const isNew = text === "" || random.next() < rewrittenShare;
      if (isNew) text = this.#newText();
      const isWritten =
        !isNew ||
        ((await this.#isDone({ kind: "create", path })) &&
          (await this.#isDone({ kind: "write", path, offset: 0, text })));
      if (isWritten && (await this.#isDone({ kind: "rename", path, to, text }))) {
        at += 1;
      } else {
        this.#moved[index]! += 1;
        text = "";
      }
      await sleep(between(0, pauseOfMoverMsMax, random));
    }
  }

  #nameOfMoved(index: number, at: number): string {
    return `moved/${index}/${this.#moved[index]}/${at % namesOfMoved}`;
  }

  /**
   * Reads a name and then the next name that the file is renamed to: at least one of the two must be found.
   */
  async #readPair(): Promise<void> {
    const { random } = this.#options;
    const index = Math.floor(random.next() * movedFiles);
    const at = Math.floor(random.next() * namesOfMoved);
    const paths = [this.#nameOfMoved(index, at), this.#nameOfMoved(index, at + 1)];
    for (const path of paths) await this.#call({ kind: "read", path, offset: 0, length: blockBytes });
  }

  async #isDone(call: FileCall): Promise<boolean> {
    const outcome = await this.#call(call);
    return outcome !== undefined && "result" in outcome;
  }

  async #untilDone(call: FileCall, node?: NodeClient): Promise<CallResult> {
    for (;;) {
      const outcome = await this.#call(call, node);
      if (outcome !== undefined && "result" in outcome) return outcome.result;
      if (outcome?.error === "FILE_NOT_FOUND") return {};
      await sleep(pauseMsMax);
    }
  }

  #call(call: FileCall, node = this.#someNode()): Promise<CallOutcome | undefined> {
    if (node === undefined) return Promise.resolve(undefined);
    const { journal } = this.#options;
    this.#paths.add(call.path);
    if (call.kind === "rename") this.#paths.add(call.to);
    const calledAt = performance.now();
    const asked = node.ask(call).then((outcome) => {
      const entry = { node: node.name, call, calledAt };
      journal.write(outcome === undefined ? entry : { ...entry, returnedAt: performance.now(), outcome });
      return outcome;
    });
    this.#underWay.add(asked);
    return asked.finally(() => this.#underWay.delete(asked));
  }

  #someNode(): NodeClient | undefined {
    const { nodes, random } = this.#options;
    const able = nodes.filter(({ takesCalls }) => takesCalls);
    return able.length === 0 ? undefined : pick(able, random);
  }

  #newText(): string {
    this.#texts += 1;
    return `w${this.#texts.toString(36).padStart(textBytes - 1, "0")}`;
  }
}
