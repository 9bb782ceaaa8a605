import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  RangeRequestSchema,
  WatchCreateRequest_FilterType as Filter,
  WatchCreateRequestSchema,
  WatchRequestSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { CoreError } from "../../../state/errors.js";
import { bytesOf, keyOf } from "../../../state/keys.js";
import { readRequest } from "./methods.js";

test("a long request of a kind without content is not decoded: a million watch filters cost nothing", () => {
  const asked = (filters: number) => {
    const fields = { key: Uint8Array.of(1), filters: Array.from({ length: filters }, () => Filter.NOPUT) };
    const value = create(WatchCreateRequestSchema, fields);
    const request = create(WatchRequestSchema, { requestUnion: { case: "createRequest", value } });
    return readRequest(WatchRequestSchema, toBinary(WatchRequestSchema, request));
  };
  expect(asked(10)).toMatchObject({ requestUnion: { case: "createRequest" } });
  const refused = asked(100_000);
  expect(refused).toBeInstanceOf(CoreError);
  expect(refused).toMatchObject({ failure: "requestTooLarge" });
});

test("a key may be as long as a request, and keeps its bytes and order", () => {
  for (const length of [1_024, 1_025, 1_500_000]) {
    const key = Uint8Array.from({ length }, (_, index) => (index * 7) % 256);
    const request = toBinary(RangeRequestSchema, create(RangeRequestSchema, { key }));
    expect(readRequest(RangeRequestSchema, request)).toMatchObject({
      $typeName: "etcdserverpb.RangeRequest",
    });
    const text = keyOf(key);
    expect(text).toHaveLength(length);
    expect(Buffer.compare(bytesOf(text), key)).toBe(0);
    // Short keys are made differently, and must compare with long ones as their bytes do.
    expect(text.startsWith(keyOf(key.subarray(0, 1_000)))).toBe(true);
    expect(keyOf(key.subarray(0, 1_000)) < text).toBe(true);
    expect(new Map([[text, 1]]).get(keyOf(new Uint8Array(key)))).toBe(1);
  }
});
