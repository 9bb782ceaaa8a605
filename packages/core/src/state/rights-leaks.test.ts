import { create, type MessageInitShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Permission_Type as Type } from "leasehold/etcd/gen/etcd/authpb_pb.js";
import type { KeyValue } from "leasehold/etcd/gen/etcd/kv_pb.js";
import type {
  CompareSchema,
  PutRequest,
  RequestOpSchema,
  TxnResponse,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { CoreError } from "./errors.js";
import { bytesOf, keyOf, type KeyRange, rangeOf } from "./keys.js";
import { keysOf } from "./leases.js";
import { CoreState } from "./state.js";

/** Checks transactions of a user with some rights against a model that looks at one key at a time. */

type Body = NonNullable<MessageInitShape<typeof CommandSchema>["body"]>;
type Operation = MessageInitShape<typeof RequestOpSchema>;
type Compare = MessageInitShape<typeof CompareSchema>;
type Words = readonly [key: string, end: string];

interface Txn {
  readonly compare: Compare[];
  readonly success: Operation[];
  readonly failure: Operation[];
}

const letters = [..."abcde"];
/** All keys, and their immediate successors. */
const places = letters.flatMap((letter) => [letter, `${letter}\0`, `${letter}x`]);
const lease = 7n;

/** One key, several keys, or all from a key on; never an empty range. */
const words = fc
  .tuple(fc.constantFrom(...letters), fc.constantFrom("", "\0", ...letters, "f"))
  .filter(([key, end]) => end === "" || end === "\0" || end > key);
const asked = ([key, end]: Words) => ({ key: bytesOf(key), rangeEnd: bytesOf(end) });

const range = words.map((at) => ({ case: "requestRange" as const, value: asked(at) }));
const deletion = fc.tuple(words, fc.boolean()).map(([at, prevKv]) => ({
  case: "requestDeleteRange" as const,
  value: { ...asked(at), prevKv },
}));
const put = fc
  .tuple(fc.constantFrom(...letters), fc.boolean(), fc.constantFrom(0n, 0n, lease))
  .map(([key, prevKv, hangsOn]) => ({
    case: "requestPut" as const,
    value: { key: bytesOf(key), value: bytesOf(key), prevKv, lease: hangsOn },
  }));
const compare = words.map((at): Compare => ({ ...asked(at), targetUnion: { case: "version", value: 1n } }));
const txn = fc.letrec<{ txn: Txn; operation: Operation }>((tie) => ({
  operation: fc
    .oneof(
      { maxDepth: 2 },
      range,
      put,
      deletion,
      tie("txn").map((value) => ({ case: "requestTxn" as const, value })),
    )
    .map((request) => ({ request })),
  txn: fc.record({
    compare: fc.array(compare, { maxLength: 1 }),
    success: fc.array(tie("operation"), { maxLength: 2 }),
    failure: fc.array(tie("operation"), { maxLength: 2 }),
  }),
})).txn;
const granted = fc.array(fc.tuple(words, fc.constantFrom(Type.READ, Type.WRITE, Type.READWRITE)), {
  minLength: 1,
  maxLength: 5,
});
type Granted = readonly (readonly [Words, Type])[];

const isIn = ({ from, to }: KeyRange, key: string) => key >= from && (to === undefined || key < to);

class Model {
  readonly #grants: Granted;

  constructor(grants: Granted) {
    this.#grants = grants;
  }

  may(type: Type, range: KeyRange): boolean {
    const fit = this.#grants
      .filter(([, each]) => each === type || each === Type.READWRITE)
      .map(([[key, end]]) => rangeOf(bytesOf(key), bytesOf(end)));
    const isCovered = places.every((key) => !isIn(range, key) || fit.some((each) => isIn(each, key)));
    return isCovered && (range.to !== undefined || fit.some(({ to }) => to === undefined));
  }

  mayAll({ compare, failure, success }: Txn, attached: readonly string[]): boolean {
    const of = ({ key, rangeEnd }: { key?: Uint8Array; rangeEnd?: Uint8Array }) =>
      rangeOf(key!, rangeEnd ?? new Uint8Array());
    const mayOperation = ({ request }: Operation): boolean => {
      if (request?.case === "requestTxn") return this.mayAll(request.value as Txn, attached);
      if (request?.case === "requestRange") return this.may(Type.READ, of(request.value));
      const value = request!.value as Pick<PutRequest, "key" | "prevKv"> & Partial<PutRequest>;
      const at = of(value);
      const ends = value.lease === lease ? attached : [];
      return (
        this.may(Type.WRITE, at) &&
        (!value.prevKv || this.may(Type.READ, at)) &&
        ends.every((key) => this.may(Type.WRITE, rangeOf(bytesOf(key), new Uint8Array())))
      );
    };
    return (
      compare.every((each) => this.may(Type.READ, of(each))) && [...success, ...failure].every(mayOperation)
    );
  }
}

interface Tells {
  readonly kvs?: readonly KeyValue[];
  readonly prevKvs?: readonly KeyValue[];
  readonly prevKv?: KeyValue;
}

/** All keys in an answer. */
function keysIn({ responses }: TxnResponse): string[] {
  return responses.flatMap(({ response }) => {
    if (response.case === "responseTxn") return keysIn(response.value);
    const { kvs = [], prevKv, prevKvs = [] } = response.value as Tells;
    return [...kvs, ...prevKvs, ...(prevKv === undefined ? [] : [prevKv])].map(({ key }) => keyOf(key));
  });
}

test("a transaction is executed only with all permissions needed, and reveals and changes nothing else", () => {
  const seen = { denied: 0, done: 0, keys: 0, changed: 0 };
  fc.assert(
    fc.property(granted, fc.array(txn, { minLength: 1, maxLength: 8 }), (grants, all) => {
      const state = new CoreState();
      const apply = (body: Body, user?: string) => {
        const caller = user === undefined ? {} : { caller: { user, revision: state.auth.revision } };
        return state.apply(create(CommandSchema, { proposer: 9n, request: 1n, body, ...caller }), 1);
      };
      const secret = bytesOf("secret");
      const setUp: Body[] = [
        ...["root", "ann"].map((name): Body => ({ case: "userAdd", value: { name, secret } })),
        { case: "userGrantRole", value: { user: "root", role: "root" } },
        { case: "roleAdd", value: { name: "some" } },
        { case: "userGrantRole", value: { user: "ann", role: "some" } },
        { case: "leaseGrant", value: { ID: lease, TTL: 60n } },
        ...letters.map((key): Body => ({
          case: "put",
          value: { key: bytesOf(key), value: bytesOf(key), lease: key === "b" ? lease : 0n },
        })),
        ...grants.map(([at, permType]): Body => ({
          case: "roleGrantPermission",
          value: { name: "some", perm: { ...asked(at), permType } },
        })),
        { case: "authEnable", value: {} },
      ];
      for (const body of setUp) expect(apply(body).answer).not.toBeInstanceOf(CoreError);
      // A later permission for the same keys replaces the former one.
      const last = new Map(grants.map((each) => [each[0].join(), each]));
      const model = new Model([...last.values()]);
      for (const value of all) {
        const held = state.leases.get(lease);
        const attached = held === undefined ? [] : [...keysOf(held)];
        const { answer, changes } = apply({ case: "txn", value }, "ann");
        const isDenied = answer instanceof CoreError && answer.failure === "permissionDenied";
        expect(isDenied).toBe(!model.mayAll(value, attached));
        if (answer instanceof CoreError) {
          if (changes.length > 0) throw new Error("a refused transaction has changed something");
          seen.denied += 1;
          continue;
        }
        const keys = keysIn(answer as TxnResponse);
        const single = (key: string) => rangeOf(bytesOf(key), new Uint8Array());
        expect(keys.filter((key) => !model.may(Type.READ, single(key)))).toEqual([]);
        expect(changes.filter(({ key }) => !model.may(Type.WRITE, single(key)))).toEqual([]);
        seen.done += 1;
        seen.keys += keys.length;
        seen.changed += changes.length;
      }
    }),
    { numRuns: 400 },
  );
  // The search often meets both sides of the boundary.
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(20);
});
