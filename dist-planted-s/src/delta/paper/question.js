import { LeaseholdError } from "../../lease/errors.js";
import { lookAtClocks } from "../effects.js";
import { corrupt, decodeLine, encodeLine, sameBytes } from "../line.js";
import { questionRegister } from "../registers.js";
import { numberAfter, RegularRegister } from "./register.js";
/** Another question may come in between a look and a write; it cannot do so all the time. */
const triesMax = 5;
const format = "leasehold-question/1";
const codec = {
    encode({ number, writer, nonce, token, asked }) {
        const { by, broken } = asked;
        const line = { number: number.toString(), writer, nonce, token: token.toString(), by, broken };
        return encodeLine(format, JSON.stringify(line));
    },
    decode(bytes) {
        const fields = decodeLine(format, bytes);
        const { number, writer, nonce, token, by, broken } = fields ?? {};
        const isSound = isCount(number) &&
            typeof writer === "string" &&
            typeof nonce === "number" &&
            isCount(token) &&
            typeof by === "string" &&
            typeof broken === "boolean";
        if (isSound) {
            const ids = { number: BigInt(number), writer, nonce, token: BigInt(token) };
            const question = { ...ids, asked: { by, broken } };
            if (sameBytes(codec.encode(question), bytes))
                return question;
        }
        throw corrupt("it is no question to a holder", bytes);
    },
};
function isCount(value) {
    return typeof value === "string" && /^\d{1,60}$/.test(value);
}
function registerOf({ farm, settings }, resource) {
    const name = questionRegister(resource);
    return new RegularRegister({ farm, name, codec, delayMs: settings.delayMs, runsOut: true });
}
export function* questionTo(environment, resource, token) {
    const { now } = yield lookAtClocks;
    const seen = yield* registerOf(environment, resource).read(now);
    if (seen.kind !== "read")
        return { asked: undefined, stores: [] };
    const stores = seen.stores.flatMap((reading, store) => (reading === undefined ? [] : [store]));
    return { asked: seen.value?.token === token ? seen.value.asked : undefined, stores };
}
/**
 * Leaves a question for the holder that was sighted. What was broken stays broken, whoever asks again.
 *
 * @throws LeaseholdError `UNSUPPORTED` by stores that have no room for questions (sanlock's lockspaces).
 */
export function* askApart(environment, resource, asked, sighting) {
    const token = sighting.record?.epoch;
    if (sighting.state !== "held" || token === undefined)
        return { sighting, stores: 0 };
    const register = registerOf(environment, resource);
    for (let tries = 0; tries < triesMax; tries++) {
        const { now } = yield lookAtClocks;
        const seen = yield* register.read(now);
        if (seen.cancelled)
            break;
        if (seen.kind === "unanswered") {
            if (seen.error.code === "UNSUPPORTED")
                throw new LeaseholdError("UNSUPPORTED", seen.error.message);
            break;
        }
        const stands = seen.value?.token === token ? seen.value.asked : undefined;
        if (stands?.broken === true || (stands !== undefined && !asked.broken))
            return { sighting, stores: environment.farm.majority };
        const question = { number: numberAfter(seen), writer: environment.writer, nonce: tries, token, asked };
        yield* register.send(question, (content) => content.number < question.number, seen.ended);
    }
    return { sighting, stores: 0 };
}
