import {
  create,
  type DescMessage,
  equals,
  fromJsonString,
  type Message,
  type MessageInitShape,
  type MessageShape,
  toJsonString,
} from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { effort } from "../../../../../../test/support/effort.js";
import { messageOf } from "../../../../../../test/support/random-messages.js";
import { AuthUserAddRequestSchema } from "leasehold/etcd/gen/etcd/auth_pb.js";
import {
  LeaseGrantRequestSchema,
  PutRequestSchema,
  RangeRequestSchema,
  TxnRequestSchema,
  WatchRequestSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { finish } from "../../../state/steps.js";
import { messageFrom } from "./json-message.js";
import { routes } from "./routes.js";

const inputs = [...new Set([...routes.values()].map(({ input }) => input))].filter(
  ({ fields }) => fields.length > 0,
);

function read<Schema extends DescMessage>(described: Schema, text: string): MessageShape<Schema> {
  return finish(messageFrom(described, text));
}

test("every request of every route is read as by the package's own reader", () => {
  for (const input of inputs)
    fc.assert(
      fc.property(
        messageOf(input, 3),
        fc.boolean(),
        fc.boolean(),
        (message, useProtoFieldName, enumAsInteger) => {
          const text = toJsonString(input, message, { useProtoFieldName, enumAsInteger });
          expect(equals(input, read(input, text), fromJsonString(input, text))).toBe(true);
        },
      ),
      { numRuns: effort },
    );
});

test("mutated text is read as by the package's own reader, or refused", () => {
  const options = { ignoreUnknownFields: true };
  const outcome = (parse: () => Message) => {
    try {
      return parse();
    } catch {
      return undefined;
    }
  };
  const change = fc.tuple(fc.nat(), fc.nat({ max: 3 }), fc.constantFrom(...'{}[],:"\\ 0-.e1nat', ""));
  const input: DescMessage = TxnRequestSchema;
  let refused = 0;
  fc.assert(
    fc.property(messageOf(input, 3), change, (message, [at, gone, put]) => {
      const text = toJsonString(input, message);
      const from = at % (text.length + 1);
      const changed = text.slice(0, from) + put + text.slice(from + gone);
      const own = outcome(() => read(input, changed));
      const packages = outcome(() => fromJsonString(input, changed, options));
      if (packages === undefined) refused += 1;
      // The package also accepts non-standard input: padding inside base64, "0x1" as a number.
      if (own === undefined) return;
      expect(packages).toBeDefined();
      expect(equals(input, own, packages!)).toBe(true);
    }),
    { numRuns: 150 * effort },
  );
  expect(refused).toBeGreaterThan(30);
});

test.each([
  [LeaseGrantRequestSchema, '{"TTL":60,"ID":1234567890123456789}', { TTL: 60n, ID: 1234567890123456789n }],
  [LeaseGrantRequestSchema, ' { "TTL" : 1e1 , "ID" : -1.0 } ', { TTL: 10n, ID: -1n }],
  [LeaseGrantRequestSchema, '{"ID":null,"what":{"a":[1,true,"\\u007d"]}}', {}],
  [
    RangeRequestSchema,
    '{"key":"_-8","range_end":"+/8=","sortOrder":"DESCEND"}',
    {
      key: Buffer.from("ffef", "hex"),
      rangeEnd: Buffer.from("fbff", "hex"),
      sortOrder: 2,
    },
  ],
  [
    PutRequestSchema,
    '{"key":"Y\\/8=","value":"YW\\nJj"}',
    {
      key: Buffer.from("63ff", "hex"),
      value: Buffer.from("abc"),
    },
  ],
  [
    WatchRequestSchema,
    '{"cancelRequest":{"watch_id":7}}',
    {
      requestUnion: { case: "cancelRequest" as const, value: { watchId: 7n } },
    },
  ],
])("what protobuf's JSON may look like is taken: %#", (described: DescMessage, text, expected) => {
  const message = create(described, expected as MessageInitShape<DescMessage>);
  expect(equals(described, read(described, text), message)).toBe(true);
});

test.each([
  [LeaseGrantRequestSchema, '{"ID":9223372036854775808}', "no whole number of 64 bits"],
  [LeaseGrantRequestSchema, '{"ID":1.5}', "no whole number of 64 bits"],
  [LeaseGrantRequestSchema, '{"ID":""}', "no whole number of 64 bits"],
  [LeaseGrantRequestSchema, '{"ID":"1e1"}', "no whole number of 64 bits"],
  [LeaseGrantRequestSchema, '{"ID":1}x', 'invalid character "x"'],
  [LeaseGrantRequestSchema, '{"ID":1', "unexpected EOF"],
  [LeaseGrantRequestSchema, '{"a":[[1,2],[}]}', 'invalid character "}"'],
  [LeaseGrantRequestSchema, `{"a":${"[".repeat(1_000_000)}`, "exceeded max depth"],
  [
    RangeRequestSchema,
    '{"sort_order":"DESC"}',
    'unknown value "DESC" for enum etcdserverpb.RangeRequest_SortOrder',
  ],
  [TxnRequestSchema, '{"compare":[{"result":"NOTEQUAL"}]}', "etcdserverpb.Compare_CompareResult"],
  [PutRequestSchema, '{"key":"!!"}', "illegal base64"],
  [PutRequestSchema, '{"key":"YQ==Y"}', "illegal base64"],
  [PutRequestSchema, '{"key":"YQ==="}', "illegal base64"],
  [PutRequestSchema, '{"key":"YWJjZ"}', "illegal base64"],
  [PutRequestSchema, '{"key":"a\nb"}', "control character"],
  [PutRequestSchema, '{"key":1}', "invalid character"],
  [PutRequestSchema, '{"prev_kv":true,"prevKv":true}', "prev_kv is set twice"],
  [AuthUserAddRequestSchema, '{"options":[]}', "invalid character"],
  [WatchRequestSchema, '{"createRequest":{},"cancelRequest":{}}', "request_union is set twice"],
])("what is no such JSON is refused: %#", (described: DescMessage, text, why) => {
  expect(() => read(described, text)).toThrow(why);
});

test("a transaction with too many operations or levels is refused before the rest is parsed", () => {
  const many = `{"success":[${"{},".repeat(7_000)}?`;
  const deep = `${'{"success":[{"request_txn":'.repeat(40)}?`;
  for (const text of [many, deep])
    expect(() => read(TxnRequestSchema, text)).toThrow("etcdserver: too many operations in txn request");
  // The largest accepted transaction: comparisons, and puts in both branches.
  const put = '{"request_put":{"key":"YQ=="}}';
  const parts = (one: string) => `[${Array.from({ length: 1_024 }, () => one).join(",")}]`;
  const most = `{"compare":${parts("{}")},"success":${parts(put)},"failure":${parts(put)}}`;
  expect(read(TxnRequestSchema, most).failure).toHaveLength(1_024);
  const nested = `${'{"success":[{"request_txn":'.repeat(32)}{"success":[${put}]}${"}]}".repeat(32)}`;
  expect(read(TxnRequestSchema, nested).success).toHaveLength(1);
});

test("parsing takes linear time, in steps", () => {
  const long = "1".repeat(3_000_000);
  // CPU time, so that other work on the machine does not count.
  const begun = process.cpuUsage();
  expect(() => read(PutRequestSchema, `{"x":${long}.5}`)).toThrow("a number of 3000002 characters");
  expect(() => read(LeaseGrantRequestSchema, `{"ID":"${long}"}`)).toThrow("no whole number");
  expect(() => read(PutRequestSchema, `{"key":"${"\\".repeat(1_500_000)}`)).toThrow("unexpected EOF");
  for (const part of ["A ", "AAAA\\n", "\\n"])
    expect(() => read(PutRequestSchema, `{"key":"${part.repeat(1_000_000)}=!"}`)).toThrow("illegal base64");
  const value = Buffer.alloc(2_000_000, 7);
  const { value: found } = read(PutRequestSchema, `{"value":"${value.toString("base64")}"}`);
  expect(value.equals(found)).toBe(true);
  // Takes a twentieth of a second. The package's reader takes ten times as long, and minutes for the numbers.
  expect(process.cpuUsage(begun).user / 1_000).toBeLessThan(10_000);
  const steps = messageFrom(PutRequestSchema, `{"x":[${"1,".repeat(100_000)}1]}`);
  let count = 0;
  while (steps.next().done !== true) count += 1;
  expect(count).toBeGreaterThan(1_000);
});
