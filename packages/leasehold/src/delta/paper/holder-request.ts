import { LeaseholdError } from "../../lease/errors.js";
import { lookAtClocks, type Protocol } from "../effects.js";
import type { AskResult, ProtocolEnvironment, HolderView } from "../lease-protocol.js";
import { corrupt, decodeEnvelope, encodeEnvelope, sameBytes } from "../record/envelope.js";
import { bigintOf } from "../record/fields.js";
import type { Asked } from "../record/record.js";
import { requestRegister } from "../record/registers.js";
import type { Stamp } from "../record/stamp.js";
import { type Codec, numberAfter, RegularRegister } from "./register.js";

/**
 * A request to a holder. It has a register of its own: a process that cannot compare and set must not touch
 * the holder's record. So a holder reads that register after it has renewed.
 */
interface HolderRequest extends Stamp {
  /** The token of the tenure that is addressed. */
  readonly token: bigint;
  readonly asked: Asked;
}

/** Another request may come in between a read and a write; it cannot do so all the time. */
const triesMax = 5;

const format = "leasehold-question/1";

const codec: Codec<HolderRequest> = {
  encode({ number, writer, nonce, token, asked }) {
    const { by, broken } = asked;
    const envelope = { number: number.toString(), writer, nonce, token: token.toString(), by, broken };
    return encodeEnvelope(format, JSON.stringify(envelope));
  },
  decode(bytes) {
    const fields = decodeEnvelope(format, bytes) as Readonly<Record<string, unknown>> | null;
    const { writer, nonce, by, broken } = fields ?? {};
    const [number, token] = [bigintOf(fields?.["number"]), bigintOf(fields?.["token"])];
    const areTexts = typeof writer === "string" && typeof by === "string";
    const areNumbers = number !== undefined && token !== undefined && typeof nonce === "number";
    if (areTexts && areNumbers && typeof broken === "boolean") {
      const request: HolderRequest = { number, writer, nonce, token, asked: { by, broken } };
      if (sameBytes(codec.encode(request), bytes)) return request;
    }
    throw corrupt("it is not a request to a holder", bytes);
  },
};

function registerOf(
  { farm, settings }: ProtocolEnvironment,
  resource: string,
): RegularRegister<HolderRequest> {
  const name = requestRegister(resource);
  return new RegularRegister({ farm, name, codec, delayMs: settings.delayMs, runsOut: true });
}

/** The last request to a tenure, and the stores that returned it: none when it is unknown at the moment. */
export interface ReceivedRequest {
  readonly asked: Asked | undefined;
  readonly stores: readonly number[];
}

export function* requestTo(
  environment: ProtocolEnvironment,
  resource: string,
  token: bigint,
): Protocol<ReceivedRequest> {
  const { now } = yield lookAtClocks;
  const seen = yield* registerOf(environment, resource).read(now);
  if (seen.kind !== "read") return { asked: undefined, stores: [] };
  const stores = seen.stores.flatMap((reading, store) => (reading === undefined ? [] : [store]));
  const requests = seen.stores
    .flatMap((reading) => reading ?? [])
    .filter((request) => request.token === token);
  // Requests that were left at one time have one number, so the greatest need not be the one that breaks.
  const asked = requests.find((request) => request.asked.broken)?.asked;
  return { asked: asked ?? (seen.value?.token === token ? seen.value.asked : undefined), stores };
}

/**
 * Leaves a request for the holder in the given view. A broken lease stays broken, whatever is requested
 * later.
 */
export function* leaveRequest(
  environment: ProtocolEnvironment,
  resource: string,
  asked: Asked,
  holderView: HolderView,
): Protocol<AskResult> {
  const token = holderView.record?.epoch;
  if (holderView.state !== "held" || token === undefined) return { holderView, stores: 0 };
  const { size, majority } = environment.farm;
  const register = registerOf(environment, resource);
  for (let tries = 0; tries < triesMax; tries += 1) {
    const { now } = yield lookAtClocks;
    const seen = yield* register.read(now);
    if (seen.cancelled) break;
    if (seen.kind === "unanswered") {
      if (seen.error.code === "UNSUPPORTED") throw new LeaseholdError("UNSUPPORTED", seen.error.message);
      break;
    }
    // A request that its sender left half done does not count: the holder may miss it.
    const isSame = (request: HolderRequest) =>
      request.token === token && (request.asked.broken || !asked.broken);
    const stores = seen.stores.filter((reading) => reading?.some(isSame)).length;
    if (asked.broken ? stores > size - majority : stores > 0) return { holderView, stores };
    const request = { number: numberAfter(seen), writer: environment.writer, nonce: tries, token, asked };
    yield* register.send(request, (content) => content.number < request.number, seen.ended);
  }
  return { holderView, stores: 0 };
}
