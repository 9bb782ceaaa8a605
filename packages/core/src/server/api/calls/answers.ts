import { FairShares } from "leasehold/common";
import type { ClientResponse } from "../../../replica/types.js";
import { CoreError } from "../../../state/errors.js";
import { finishInTurns } from "../../accounts/turns.js";
import type { Answer, UnaryCall } from "../../wire/rpc/call.js";
import { clientOf, grpcError } from "./calls.js";
import {
  bytesOfAnswer,
  encode,
  hasWritten,
  isLarge,
  type LongAnswer,
  rangeWithTree,
  retainedBytes,
} from "./encode.js";

/**
 * Number of the largest answers that have room at a time: one client may leave one unread, and others still
 * get theirs.
 */
const largestMax = 2;

/** Interval for checking the memory that long answers retain. */
const lookMs = 1_000;

/** Approximate memory that one change replaces in the tree at most: a leaf, and at times nodes above it. */
const changeBytes = 1_024;

/** A long answer that its client has not read. */
interface Untaken {
  readonly answer: ClientResponse;
  /** Charged for its tree. */
  treeBytes: number;
}

type Call = Pick<UnaryCall, "cut" | "peer" | "whenOver">;

/**
 * Unread answers. Clients share the room for them, so that a client that does not read uses up only its own
 * share. A long range refers to versions of the state: when the state has dropped more of those than the
 * largest answer may have, or its client has no room for the tree that it retains, the answer is cut off.
 */
export class Answers {
  readonly #shares: FairShares<string>;
  readonly #retainedBytesMax: number;
  /** In the order of creation. */
  readonly #long = new Map<Call, Untaken>();
  readonly #looking: NodeJS.Timeout;

  /** @param largestBytes of one answer */
  constructor(largestBytes: number) {
    this.#shares = new FairShares(largestMax * largestBytes);
    this.#retainedBytesMax = largestBytes;
    this.#looking = setInterval(() => this.#look(), lookMs);
  }

  close(): void {
    clearInterval(this.#looking);
  }

  /** Whether this client has room: one that does not read gets no more answers. */
  hasRoomFor(client: string): boolean {
    return this.#shares.hasRoomFor(client);
  }

  send(call: Call, answer: ClientResponse, callback: Answer): void {
    const client = clientOf(call);
    const bytes = bytesOfAnswer(answer);
    const isLong = isLarge(answer);
    // An executed write is answered in any case: its client's room was checked before, and it gets no more
    // until it reads.
    if (!isLong || hasWritten(answer)) this.#shares.add(client, bytes);
    else if (!this.#shares.take(client, bytes)) {
      callback(grpcError(new CoreError("tooManyRequests")));
      return;
    }
    const untaken = { answer, treeBytes: 0 };
    if (isLong) this.#long.set(call, untaken);
    call.whenOver(() => {
      this.#shares.giveBack(client, bytes + untaken.treeBytes);
      this.#long.delete(call);
    });
    if (isLong) void sendInTurns(answer, callback);
    else callback(null, answer);
  }

  #look(): void {
    // All of them together retain no more versions than the one that retains most.
    for (const [call, { answer }] of this.#long)
      if (retainedBytes(answer) > this.#retainedBytesMax) cut(call, answer);
    this.#countTrees();
  }

  /**
   * Each retains the tree nodes that have changed between it and the next one; its client is charged for
   * them.
   */
  #countTrees(): void {
    const nextOf = new Map<object, number>();
    for (const [call, untaken] of [...this.#long].toReversed()) {
      const range = rangeWithTree(untaken.answer);
      if (range === undefined) continue;
      const { changesBefore, losses } = range.lossesSince;
      const next = nextOf.get(losses) ?? losses.changes;
      nextOf.set(losses, Math.min(next, changesBefore));
      const bytes = Math.min(range.treeBytes, changeBytes * Math.max(0, next - changesBefore));
      const more = Math.max(0, bytes - untaken.treeBytes);
      if (this.#shares.take(clientOf(call), more)) untaken.treeBytes += more;
      else cut(call, untaken.answer);
    }
  }
}

function cut(call: Call, answer: ClientResponse): void {
  call.cut(grpcError(new CoreError(hasWritten(answer) ? "answerTooLargeDone" : "tooManyRequests")));
}

async function sendInTurns(answer: ClientResponse, callback: Answer): Promise<void> {
  let encoded: LongAnswer;
  try {
    encoded = await finishInTurns(encode(answer));
  } catch (error) {
    callback(grpcError(new CoreError("internal", error)));
    return;
  }
  callback(null, encoded);
}
