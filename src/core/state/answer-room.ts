import type { Version } from "./revisions.js";

/** What a version in an answer takes in memory beside its key and value, measured: its record, two arrays of bytes. */
const answerOverheadBytes = 400;

/** What may still be put into one answer: a transaction can ask for all there is a hundred times. */
export class AnswerRoom {
  #bytes: number;
  /** Somebody waits for an answer. */
  readonly isAwaited: boolean;

  /** @param bytes in memory, about; less than 0 if nobody waits for an answer */
  constructor(bytes: number) {
    this.#bytes = bytes;
    this.isAwaited = bytes >= 0;
  }

  get isExceeded(): boolean {
    return this.#bytes < 0;
  }

  /** False: there is no room for it, nor for anything after it. */
  take(version: Version): boolean {
    if (!this.isExceeded) this.#bytes -= answerOverheadBytes + version.key.length + version.value.length;
    return !this.isExceeded;
  }
}
