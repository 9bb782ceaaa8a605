import { decodeEnvelope, encodeEnvelope } from "leasehold/inner/delta/record/envelope.js";
import type { Codec } from "leasehold/inner/delta/paper/register.js";
import type { Stamp } from "leasehold/inner/delta/record/stamp.js";
import { type PartsStage, stampText } from "../stage/stage.js";

const format = "stamp/1";

const stampCodec: Codec<Stamp> = {
  encode: ({ number, writer, nonce }) =>
    encodeEnvelope(format, JSON.stringify([number.toString(), writer, nonce])),
  decode: (bytes) => {
    const [number, writer, nonce] = decodeEnvelope(format, bytes) as [string, string, number];
    return { number: BigInt(number), writer, nonce };
  },
};

/** Reads and writes one regular register, without end. */
export async function readAndWrite(stage: PartsStage): Promise<void> {
  const { parts, plan, party, random, counters } = stage;
  const register = parts.register("x", stampCodec);
  let nonce = 0;
  for (;;) {
    await party.sleep(random.exponential(Math.min(plan.thinkMeanMs, plan.leaseMs)));
    if (random.chance(0.4)) {
      const value = { number: 0n, writer: party.writer, nonce: (nonce += 1) };
      let written: Stamp = value;
      const writing = register.write((number) => (written = { ...value, number }), parts.now());
      const { kind } = await party.alive(parts.run(writing));
      counters.writes += 1;
      stage.log(`${party.writer} writes ${stampText(written)}: ${kind}`);
      if (kind === "done") stage.tell((observer) => observer.written?.(written));
    } else {
      stage.tell((observer) => observer.readBegan?.(party));
      const seen = await party.alive(parts.run(register.read(parts.now())));
      if (seen.kind === "unanswered") continue;
      counters.reads += 1;
      stage.log(`${party.writer} reads ${stampText(seen.value)}`);
      stage.tell((observer) => observer.readEnded?.(party, seen.value));
    }
  }
}
