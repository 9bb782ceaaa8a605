import { LeaseholdError } from "../../lease/errors.js";
import { lookAtClocks, type Protocol } from "../effects.js";
import type { AskResult, ProtocolEnvironment, HolderView } from "../lease-protocol.js";
import { corrupt, decodeEnvelope, encodeEnvelope, sameBytes } from "../record/envelope.js";
import { bigintOf } from "../record/fields.js";
import type { Asked } from "../record/record.js";
import { questionRegister } from "../record/registers.js";
import type { Stamp } from "../record/stamp.js";
import { type Codec, numberAfter, RegularRegister } from "./register.js";

/**
 * What somebody wants of a holder. It stands in a register of its own: who cannot compare and set must not touch the holder's
 * record. So a holder looks there when it has renewed.
 */
interface Question extends Stamp {
  /** Of the tenure that is meant. */
  readonly token: bigint;
  readonly asked: Asked;
}

/** Another question may come in between a look and a write; it cannot do so all the time. */
const triesMax = 5;

const format = "leasehold-question/1";

const codec: Codec<Question> = {
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
      const question: Question = { number, writer, nonce, token, asked: { by, broken } };
      if (sameBytes(codec.encode(question), bytes)) return question;
    }
    throw corrupt("it is no question to a holder", bytes);
  },
};

function registerOf({ farm, settings }: ProtocolEnvironment, resource: string): RegularRegister<Question> {
  const name = questionRegister(resource);
  return new RegularRegister({ farm, name, codec, delayMs: settings.delayMs, runsOut: true });
}

/** What was asked of a tenure last, and which stores have said so: none when that cannot be known now. */
export interface Heard {
  readonly asked: Asked | undefined;
  readonly stores: readonly number[];
}

export function* questionTo(
  environment: ProtocolEnvironment,
  resource: string,
  token: bigint,
): Protocol<Heard> {
  const { now } = yield lookAtClocks;
  const seen = yield* registerOf(environment, resource).read(now);
  if (seen.kind !== "read") return { asked: undefined, stores: [] };
  const stores = seen.stores.flatMap((reading, store) => (reading === undefined ? [] : [store]));
  return { asked: seen.value?.token === token ? seen.value.asked : undefined, stores };
}

/**
 * Leaves a question for the holder that was sighted. What was broken stays broken, whatever is asked later.
 *
 * @throws LeaseholdError `UNSUPPORTED` by stores that have no room for questions (sanlock's lockspaces).
 */
export function* askApart(
  environment: ProtocolEnvironment,
  resource: string,
  asked: Asked,
  holderView: HolderView,
): Protocol<AskResult> {
  const token = holderView.record?.epoch;
  if (holderView.state !== "held" || token === undefined) return { holderView, stores: 0 };
  const register = registerOf(environment, resource);
  for (let tries = 0; tries < triesMax; tries += 1) {
    const { now } = yield lookAtClocks;
    const seen = yield* register.read(now);
    if (seen.cancelled) break;
    if (seen.kind === "unanswered") {
      if (seen.error.code === "UNSUPPORTED") throw new LeaseholdError("UNSUPPORTED", seen.error.message);
      break;
    }
    const stands = seen.value?.token === token ? seen.value.asked : undefined;
    if (stands?.broken === true || (stands !== undefined && !asked.broken))
      return { holderView, stores: environment.farm.majority };
    const question = { number: numberAfter(seen), writer: environment.writer, nonce: tries, token, asked };
    yield* register.send(question, (content) => content.number < question.number, seen.ended);
  }
  return { holderView, stores: 0 };
}
