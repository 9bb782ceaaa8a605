import { Charge, Room } from "leasehold/common";
import type { ClientResponse } from "../../../replica/types.js";
import { CoreError, tooManyRequests } from "../../../state/errors.js";
import { finishInTurns } from "../../accounts/turns.js";
import { statusOf, type Answer, type UnaryCall } from "../../wire/rpc/call.js";
import { clientOf } from "./calls.js";
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
 * Number of largest answers that have room at a time: one client may leave one unread, and others still get
 * theirs.
 */
const largestMax = 2;

/** Interval for checking the memory that long answers retain. */
const lookMs = 1_000;

/**
 * Upper bound of the tree memory that one change replaces, approximately: a leaf, and sometimes nodes above
 * it.
 */
const changeBytes = 1_024;

/** A long answer that its client has not read. */
interface Untaken {
  readonly answer: ClientResponse;
  readonly charge: Charge;
  /** The part of the charge for its tree. */
  treeBytes: number;
}

type Call = Pick<UnaryCall, "cut" | "peer" | "whenOver">;

/**
 * Unread answers. Clients share the room for them, so a client that does not read uses up only its own share.
 * A long range refers to versions in the state. The answer is cut off when the state has dropped more of
 * those versions than the largest answer may have, or when its client has no room for the tree that the
 * answer retains.
 */
export class Answers {
  /** Bytes of unread answers. */
  readonly #room: Room<CoreError>;
  readonly #retainedBytesMax: number;
  /** In order of creation. */
  readonly #long = new Map<Call, Untaken>();
  readonly #looking: NodeJS.Timeout;

  /** @param largestBytes bound of one answer */
  constructor(largestBytes: number) {
    this.#room = new Room(largestMax * largestBytes, tooManyRequests);
    this.#retainedBytesMax = largestBytes;
    this.#looking = setInterval(() => this.#look(), lookMs);
  }

  close(): void {
    clearInterval(this.#looking);
  }

  /** Returns the error for a client that does not read, and so gets no more answers. */
  refusalFor(client: string): CoreError | undefined {
    return this.#room.hasRoomFor(client) ? undefined : this.#room.refusal(client);
  }

  send(call: Call, answer: ClientResponse, callback: Answer): void {
    const client = clientOf(call);
    const bytes = bytesOfAnswer(answer);
    const isLong = isLarge(answer);
    // An executed write is always answered: its client's room was checked before, and the client gets no more
    // answers until it reads.
    const charge = new Charge(this.#room, client);
    if (!isLong || hasWritten(answer)) charge.overdraw(bytes);
    else if (!charge.tryAdd(bytes)) {
      callback(statusOf(this.#room.refusal(client)));
      return;
    }
    const untaken = { answer, charge, treeBytes: 0 };
    if (isLong) this.#long.set(call, untaken);
    call.whenOver(() => {
      charge.end();
      this.#long.delete(call);
    });
    if (isLong) void sendInTurns(answer, callback);
    else callback(null, answer);
  }

  #look(): void {
    // Together they retain no more versions than the one that retains most.
    for (const [call, { answer }] of this.#long)
      if (retainedBytes(answer) > this.#retainedBytesMax) cut(call, answer);
    this.#countTrees();
  }

  /**
   * Each answer retains the tree nodes that changed between it and the next one; its client is charged for
   * those.
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
      if (untaken.charge.tryAdd(more)) untaken.treeBytes += more;
      else cut(call, untaken.answer);
    }
  }
}

function cut(call: Call, answer: ClientResponse): void {
  call.cut(statusOf(new CoreError(hasWritten(answer) ? "answerTooLargeDone" : "tooManyRequests")));
}

async function sendInTurns(answer: ClientResponse, callback: Answer): Promise<void> {
  let encoded: LongAnswer;
  try {
    encoded = await finishInTurns(encode(answer));
  } catch (error) {
    callback(statusOf(new CoreError("internal", error)));
    return;
  }
  callback(null, encoded);
}
