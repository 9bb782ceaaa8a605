import { LeaseholdError } from "../../lease/errors.js";
import { lookAtClocks, type Protocol } from "../effects.js";
import type { AskResult, ProtocolEnvironment, HolderView } from "../lease-protocol.js";
import { corrupt, decodeEnvelope, encodeEnvelope, sameBytes } from "../record/envelope.js";
import { bigintOf, greatestBigint } from "../record/fields.js";
import type { Asked } from "../record/record.js";
import { requestRegister } from "../record/registers.js";
import { type Stamp, compareStamps } from "../record/stamp.js";
import { type Codec, numberAfter, RegularRegister } from "./register.js";

/** The requests of one process. For each kind only the greatest token matters, because tokens rise. */
interface Wish {
  /** All tenures up to this token are to be released. */
  readonly token: bigint;
  readonly by: string;
  /** All tenures up to this token are broken; at most `token`, and 0 if none is. */
  readonly brokenTo: bigint;
}

/**
 * A request to holders. It has its own register, because a process that cannot compare and set must not touch
 * the holder's record. So a holder reads that register after it has renewed.
 */
interface HolderRequest extends Stamp, Wish {}

/**
 * Attempts to leave a request: another request may come in between a read and a write, but not every time.
 */
const triesMax = 5;

const format = "leasehold-question/1";
/** With `brokenTo` instead of `broken`, for a break and a request that name different tokens. */
const mixedFormat = "leasehold-question/2";

const codec: Codec<HolderRequest> = {
  encode({ number, writer, nonce, token, by, brokenTo }) {
    const common = { number: number.toString(), writer, nonce, token: token.toString(), by };
    const isMixed = brokenTo > 0n && brokenTo < token;
    return isMixed
      ? encodeEnvelope(mixedFormat, JSON.stringify({ ...common, brokenTo: brokenTo.toString() }))
      : encodeEnvelope(format, JSON.stringify({ ...common, broken: brokenTo > 0n }));
  },
  decode(bytes) {
    const isMixed = bytes[format.length - 1] === mixedFormat.charCodeAt(format.length - 1);
    const envelope = decodeEnvelope(isMixed ? mixedFormat : format, bytes);
    const fields = envelope as Readonly<Record<string, unknown>> | null;
    const { writer, nonce, by, broken } = fields ?? {};
    const [number, token] = [bigintOf(fields?.["number"]), bigintOf(fields?.["token"])];
    const brokenTo = isMixed ? bigintOf(fields?.["brokenTo"]) : broken === true ? token : 0n;
    const areTexts = typeof writer === "string" && typeof by === "string" && typeof nonce === "number";
    if (areTexts && number !== undefined && token !== undefined && brokenTo !== undefined) {
      const request: HolderRequest = { number, writer, nonce, token, by, brokenTo };
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

/** The last request to a tenure, and the stores that returned it; no stores while it is unknown. */
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
    .filter((request) => request.token >= token)
    .toSorted(compareStamps);
  // A break may be followed by a request that does not break.
  const request = requests.find(({ brokenTo }) => brokenTo >= token) ?? requests.at(-1);
  return { asked: request && { by: request.by, broken: request.brokenTo >= token }, stores };
}

/**
 * The requests that this process is leaving, by resource. Each replaces the previous one in this process's
 * slot, so it contains all of them.
 */
export class RequestsUnderWay {
  readonly #all = new Map<string, { wish: Wish; calls: number }>();

  begin(resource: string, wish: Wish): void {
    const entry = this.#all.get(resource);
    this.#all.set(resource, { wish: both(wish, entry?.wish), calls: (entry?.calls ?? 0) + 1 });
  }

  /** Adds this request, and returns the combination of all. */
  add(resource: string, wish: Wish): Wish {
    const entry = this.#all.get(resource)!;
    entry.wish = both(wish, entry.wish);
    return entry.wish;
  }

  end(resource: string): void {
    const entry = this.#all.get(resource)!;
    entry.calls -= 1;
    if (entry.calls === 0) this.#all.delete(resource);
  }
}

/** The union of both. */
function both(wish: Wish, other: Wish | undefined): Wish {
  const { token, by } = other !== undefined && other.token > wish.token ? other : wish;
  return { token, by, brokenTo: greatestBigint([wish.brokenTo, other?.brokenTo ?? 0n]) };
}

/**
 * Leaves a request for the holder in the given view. A broken lease stays broken, whatever is requested later
 * and for whichever tenure: a view may be older than the last request, because a store that answers may have
 * an old record.
 */
export function* leaveRequest(
  environment: ProtocolEnvironment,
  underWay: RequestsUnderWay,
  resource: string,
  asked: Asked,
  holderView: HolderView,
): Protocol<AskResult> {
  const token = holderView.record?.epoch;
  if (holderView.state !== "held" || token === undefined) return { holderView, stores: 0 };
  const wish: Wish = { token, by: asked.by, brokenTo: asked.broken ? token : 0n };
  underWay.begin(resource, wish);
  try {
    return { holderView, stores: yield* leave(environment, underWay, resource, wish) };
  } finally {
    underWay.end(resource);
  }
}

/** Returns how many stores have the request, or 0 if they are too few. */
function* leave(
  environment: ProtocolEnvironment,
  underWay: RequestsUnderWay,
  resource: string,
  wish: Wish,
): Protocol<number> {
  const { size, majority } = environment.farm;
  const { writer } = environment;
  const register = registerOf(environment, resource);
  const hasIt = (request: HolderRequest) =>
    wish.brokenTo > 0n ? request.brokenTo >= wish.brokenTo : request.token >= wish.token;
  for (let nonce = 0; nonce < triesMax; nonce += 1) {
    const { now } = yield lookAtClocks;
    const seen = yield* register.read(now);
    if (seen.cancelled) break;
    if (seen.kind === "unanswered") {
      if (seen.error.code === "UNSUPPORTED") throw new LeaseholdError("UNSUPPORTED", seen.error.message);
      break;
    }
    // A request that its sender left incomplete does not count: the holder may miss it.
    const stores = seen.stores.filter((reading) => reading?.some(hasIt)).length;
    if (wish.brokenTo > 0n ? stores > size - majority : stores > 0) return stores;
    // The write replaces this process's last request in its slot, or in a cell that the read did not show, so
    // it must include that request.
    const own = seen.stores.flatMap(
      (reading) => reading?.filter((request) => request.writer === writer) ?? [],
    );
    const whole = underWay.add(resource, own.reduce<Wish>(both, wish));
    const request = { ...whole, number: numberAfter(seen), writer, nonce };
    yield* register.send(
      request,
      (content, next) => content.number < next.number && { ...next, ...both(next, content) },
      seen.ended,
    );
  }
  return 0;
}
