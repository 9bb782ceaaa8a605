import { expect, test } from "vitest";
import { Kind, Message } from "../../protocol/message.js";
import { ByteReader } from "../wire/bytes.js";
import { decodeBatchHeader, decodeMessage } from "../wire/codec.js";
import { FRAME_HEADER_BYTES } from "../wire/frame.js";
import { Outbox } from "./outbox.js";

const stamp = { monoMs: 1, loMs: 2, hiMs: 3 };
const echo = { monoMs: 0, loMs: 0, heldMs: 0, roundTripMs: -1 };

const request = (kind: Kind, instance: number): Message =>
  Object.assign(new Message(), { kind, instance, view: 1, resource: "r", owner: "p.1" });

/** The instances of all messages in sending order, and the clocks of their batches. */
function contents(outbox: Outbox): { instances: number[]; stamps: number[] } {
  const writer = outbox.take(stamp, echo);
  const instances: number[] = [];
  const stamps: number[] = [];
  for (let start = 0; start < writer.length;) {
    const end = start + 4 + writer.view.getUint32(start);
    const reader = new ByteReader();
    reader.reset(writer.bytes, start + FRAME_HEADER_BYTES, end);
    const read = { monoMs: 0, loMs: 0, hiMs: 0 };
    decodeBatchHeader(reader, read, { ...echo });
    stamps.push(read.monoMs);
    const message = new Message();
    while (reader.remaining > 0) {
      decodeMessage(reader, message, 1, "p.1");
      instances.push(message.instance);
    }
    start = end;
  }
  return { instances, stamps };
}

test("renewals leave before everything queued, each in a batch with the clocks of that moment", () => {
  const outbox = new Outbox();
  outbox.add(request(Kind.acquire, 1));
  outbox.addUrgent(request(Kind.write, 2));
  outbox.add(request(Kind.acquire, 3));
  outbox.addUrgent(request(Kind.write, 4));
  expect(contents(outbox)).toEqual({ instances: [2, 4, 1, 3], stamps: [1, 1] });
  expect([outbox.length, outbox.urgentLength]).toEqual([0, 0]);
  outbox.add(request(Kind.acquire, 5));
  expect(contents(outbox)).toEqual({ instances: [5], stamps: [1] });
});
