import { FairShares } from "../../../common/fair-shares.js";
import type { ClientResponse } from "../../replica/types.js";
import { CoreError } from "../../state/errors.js";
import { finishInTurns } from "../common/turns.js";
import type { Answer, UnaryCall } from "../rpc/call.js";
import { clientOf, grpcError } from "./calls.js";
import { bytesOfAnswer, encode, type Encoded, isLarge } from "./encode.js";

/**
 * So many of the largest have room beside each other: one client may have one that it does not take, and
 * others still get theirs.
 */
const largestMax = 2;

type Call = Pick<UnaryCall, "peer" | "whenOver">;

/**
 * Answers that their clients have not taken in yet. Clients share the room that there is for them, so that
 * those who ask and do not read take nobody's memory but their own share.
 */
export class Answers {
  readonly #shares: FairShares<string>;

  /** @param largestBytes of one answer */
  constructor(largestBytes: number) {
    this.#shares = new FairShares(largestMax * largestBytes);
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
    call.whenOver(() => this.#shares.giveBack(client, bytes));
    if (isLong) void sendInTurns(answer, callback);
    else callback(null, answer);
  }
}

/** Nothing was changed, as far as can be seen from it. */
function isRead({ $typeName }: ClientResponse): boolean {
  return $typeName !== "etcdserverpb.TxnResponse" && $typeName !== "etcdserverpb.DeleteRangeResponse";
}

async function sendInTurns(answer: ClientResponse, callback: Answer): Promise<void> {
  let encoded: Encoded;
  try {
    encoded = await finishInTurns(encode(answer));
  } catch (error) {
    callback(grpcError(new CoreError("internal", error)));
    return;
  }
  callback(null, encoded);
}
