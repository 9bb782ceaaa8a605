import { FairShares } from "../../../common/fair-shares.js";
import type { ClientResponse } from "../../replica/types.js";
import { CoreError } from "../../state/errors.js";
import { finishInTurns } from "../common/turns.js";
import type { Answer, UnaryCall } from "../rpc/call.js";
import { clientOf, grpcError } from "./calls.js";
import { bytesOfAnswer, encode, isLarge, type LongAnswer, retainedBytes } from "./encode.js";

/**
 * So many of the largest have room beside each other: one client may have one that it does not take, and
 * others still get theirs.
 */
const largestMax = 2;

/** How often it is looked what long answers keep in memory that the state has no more. */
const lookMs = 1_000;

type Call = Pick<UnaryCall, "cut" | "peer" | "whenOver">;

/**
 * Answers that their clients have not taken in yet. Clients share the room that there is for them, so that
 * those who ask and do not read take nobody's memory but their own share. A long range refers to what the
 * state has anyway; when the state has lost more of that than the largest answer may have, the answer ends in
 * its middle.
 */
export class Answers {
  readonly #shares: FairShares<string>;
  readonly #retainedBytesMax: number;
  readonly #long = new Map<Call, ClientResponse>();
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

  /** Whether this client has read its answers: one that has not gets no more. */
  hasRoomFor(client: string): boolean {
    return this.#shares.hasRoomFor(client);
  }

  send(call: Call, answer: ClientResponse, callback: Answer): void {
    const client = clientOf(call);
    const bytes = bytesOfAnswer(answer);
    const isLong = isLarge(answer);
    if (!isLong) this.#shares.add(client, bytes);
    else if (!this.#shares.take(client, bytes)) {
      callback(grpcError(new CoreError(isRead(answer) ? "tooManyRequests" : "answerTooLargeDone")));
      return;
    }
    if (isLong) this.#long.set(call, answer);
    call.whenOver(() => {
      this.#shares.giveBack(client, bytes);
      this.#long.delete(call);
    });
    if (isLong) void sendInTurns(answer, callback);
    else callback(null, answer);
  }

  /** All of them together keep no more than the one that keeps most. */
  #look(): void {
    for (const [call, answer] of this.#long)
      if (retainedBytes(answer) > this.#retainedBytesMax)
        call.cut(grpcError(new CoreError("tooManyRequests")));
  }
}

/** Nothing was changed, as far as can be seen from it. */
function isRead({ $typeName }: ClientResponse): boolean {
  return $typeName !== "etcdserverpb.TxnResponse" && $typeName !== "etcdserverpb.DeleteRangeResponse";
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
