import { LeaseholdError } from "../../../lease/errors.js";
import { type HistoryEntry, type HistoryHeader, type Nanoseconds, stampOf } from "./format.js";
import { type Refuse, parseEntry, parseHeader } from "./parse.js";

/**
 * The error for a refused journal (code `BAD_HISTORY`); nothing is judged then. The message begins with
 * `source:line:`.
 */
export class HistoryError extends LeaseholdError {
  readonly source: string;
  /** Counted from 1. */
  readonly line: number;

  constructor(source: string, line: number, problem: string) {
    super("BAD_HISTORY", `${source}:${line}: ${problem}`);
    this.name = "HistoryError";
    this.source = source;
    this.line = line;
  }
}

/** Receives the lines of a journal, and throws the error of `refuse` for an invalid one. */
export interface JournalSink {
  header(header: HistoryHeader, refuse: Refuse): void;
  entry(entry: HistoryEntry, refuse: Refuse): void;
  refused(error: HistoryError): void;
  ended(): void;
}

/**
 * The maximum length of a line. Real ones have a few hundred characters, but a file without newlines must not
 * be accumulated in memory.
 */
const lineCharsMax = 65_536;

/**
 * One journal, read in pieces. Created by `HistoryJudge.journal`. Call `feed` with each piece and then `end`.
 */
export class JournalReader {
  readonly #source: string;
  readonly #sink: JournalSink;
  readonly #refuse: Refuse = (problem) => this.#refusal(problem);
  /** The beginning of a line whose newline has not arrived. */
  #rest = "";
  /** The number of the present line. */
  #line = 0;
  #hasHeader = false;
  #stamp: Nanoseconds = 0n;

  constructor(source: string, sink: JournalSink) {
    this.#source = source;
    this.#sink = sink;
  }

  /**
   * Reads the next piece of the journal's text, of any length.
   *
   * @throws HistoryError at the first invalid line.
   */
  feed(text: string): void {
    let from = 0;
    for (let to = text.indexOf("\n"); to !== -1; to = text.indexOf("\n", from)) {
      this.#read(this.#rest + text.slice(from, to));
      this.#rest = "";
      from = to + 1;
    }
    this.#rest += text.slice(from);
    if (this.#rest.length <= lineCharsMax) return;
    this.#line += 1;
    throw this.#refuse(`longer than ${lineCharsMax} characters`);
  }

  /**
   * Ends the journal.
   *
   * @throws HistoryError if its last line has no newline, or if it is empty.
   */
  end(): void {
    if (this.#rest !== "") {
      this.#line += 1;
      throw this.#refuse("truncated: the last line has no newline");
    }
    if (!this.#hasHeader) {
      this.#line = 1;
      throw this.#refuse("empty: it has no header");
    }
    this.#sink.ended();
  }

  #read(line: string): void {
    this.#line += 1;
    if (!this.#hasHeader) {
      this.#sink.header(parseHeader(line, this.#refuse), this.#refuse);
      this.#hasHeader = true;
      return;
    }
    const entry = parseEntry(line, this.#refuse);
    const stamp = stampOf(entry);
    if (stamp < this.#stamp)
      throw this.#refuse(`out of order: its stamp ${stamp} is before ${this.#stamp} of the line above`);
    this.#stamp = stamp;
    this.#sink.entry(entry, this.#refuse);
  }

  #refusal(problem: string): HistoryError {
    const error = new HistoryError(this.#source, this.#line, problem);
    this.#sink.refused(error);
    return error;
  }
}
