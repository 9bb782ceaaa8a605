import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { EventSchema } from "leasehold/etcd/gen/etcd/kv_pb.js";
import { ResponseHeaderSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { Context } from "./context.js";
import { SharedEvent } from "./watch-events.js";

/** A server at this revision and term. */
function at(revision: number, term: number): Context {
  const header = () => create(ResponseHeaderSchema, { revision: BigInt(revision), raftTerm: BigInt(term) });
  return { state: { revisions: { current: revision } }, leadership: { term }, header } as unknown as Context;
}

test("watches with the same number share a response while all of it is true", () => {
  const shared = new SharedEvent();
  const [event, other] = [create(EventSchema), create(EventSchema)];
  const first = shared.responseOf(event, 0n, at(2, 1));
  expect(shared.responseOf(event, 0n, at(2, 1))).toBe(first);
  // A later revision, another number, another term, and another event.
  expect(shared.responseOf(event, 0n, at(3, 1)).header).toMatchObject({ revision: 3n, raftTerm: 1n });
  expect(shared.responseOf(event, 7n, at(3, 1))).toMatchObject({ watchId: 7n, events: [event] });
  expect(shared.responseOf(event, 7n, at(3, 2)).header).toMatchObject({ revision: 3n, raftTerm: 2n });
  expect(shared.responseOf(other, 7n, at(3, 2)).events[0]).toBe(other);
  expect(first).toMatchObject({ watchId: 0n, header: { revision: 2n }, events: [event] });
});
