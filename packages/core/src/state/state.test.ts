import { create, type MessageInitShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  Compare_CompareResult as Result,
  Compare_CompareTarget as Target,
  RangeRequest_SortOrder as Order,
  RangeRequest_SortTarget as SortBy,
  RangeRequestSchema,
  type RangeResponse,
  type RequestOpSchema,
  type TxnRequest,
  PutRequestSchema,
  TxnRequestSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { type Command, CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { pieceBytesMax } from "../journal/snapshots.js";
import { checkTxn } from "./check.js";
import { CoreError } from "./errors.js";
import { bytesOf, keyOf } from "./keys.js";
import { withFaults } from "../../../../test/planted/switches.js";
import { keysOf as keysOfLease } from "./leases.js";
import { restoreState, SnapshotError, snapshotPieces } from "./snapshot.js";
import { type Applied, CoreState } from "./state.js";
import { finish } from "./steps.js";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (content: Uint8Array) => new TextDecoder().decode(content);

type Body = NonNullable<MessageInitShape<typeof CommandSchema>["body"]>;
const command = (body: Body): Command => create(CommandSchema, { body });
const put = (
  key: string,
  value: string,
  more: { lease?: bigint; ignoreValue?: boolean; prevKv?: boolean } = {},
) => command({ case: "put", value: { key: bytes(key), value: bytes(value), ...more } });
const remove = (key: string, end = "") =>
  command({ case: "deleteRange", value: { key: bytes(key), rangeEnd: bytes(end) } });
const grant = (id: bigint, ttl = 60n) => command({ case: "leaseGrant", value: { ID: id, TTL: ttl } });
const revoke = (id: bigint) => command({ case: "leaseRevoke", value: { ID: id } });

function apply(state: CoreState, ...commands: Command[]): Applied {
  return commands.map((each) => state.apply(each, 1)).at(-1)!;
}

function failureOf({ answer }: Applied): string | undefined {
  return answer instanceof CoreError ? answer.failure : undefined;
}

function refusalOf(check: () => void): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return (error as CoreError).failure;
  }
}

function read(state: CoreState, request: MessageInitShape<typeof RangeRequestSchema>): RangeResponse {
  return finish(state.read(create(RangeRequestSchema, request)));
}

const keysOf = ({ kvs }: RangeResponse) => kvs.map(({ key }) => text(key));
const all = { key: bytes("\0"), rangeEnd: bytes("\0") };

function txn(request: MessageInitShape<typeof TxnRequestSchema>): TxnRequest {
  return create(TxnRequestSchema, request);
}

describe("revisions", () => {
  test("increase once for each write transaction that changes something", () => {
    const state = new CoreState();
    expect(apply(state, put("a", "1")).revision).toBe(2);
    expect(apply(state, remove("missing")).revision).toBe(2);
    expect(apply(state, grant(7n)).revision).toBe(2);
    expect(apply(state, revoke(7n)).revision).toBe(2);
    expect(failureOf(apply(state, put("a", "2", { lease: 9n })))).toBe("leaseNotFound");
    expect(state.revisions.current).toBe(2);
    const twice = txn({
      success: [
        { request: { case: "requestPut", value: { key: bytes("b"), value: bytes("1") } } },
        { request: { case: "requestPut", value: { key: bytes("c"), value: bytes("1") } } },
      ],
    });
    expect(apply(state, command({ case: "txn", value: twice })).revision).toBe(3);
    const onlyReads = txn({ success: [{ request: { case: "requestRange", value: { key: bytes("a") } } }] });
    expect(apply(state, command({ case: "txn", value: onlyReads })).revision).toBe(3);
  });

  test("a key's versions are counted, from 1 again after a deletion", () => {
    const state = new CoreState();
    apply(state, put("a", "1"), put("a", "2"));
    expect(read(state, { key: bytes("a") }).kvs[0]).toMatchObject({
      version: 2n,
      createRevision: 2n,
      modRevision: 3n,
    });
    apply(state, remove("a"), put("a", "3"));
    expect(read(state, { key: bytes("a") }).kvs[0]).toMatchObject({
      version: 1n,
      createRevision: 5n,
      modRevision: 5n,
    });
  });

  test("earlier revisions can be read until they are compacted", () => {
    const state = new CoreState();
    apply(state, put("a", "1"), put("a", "2"), remove("a"), put("b", "1"));
    expect(text(read(state, { key: bytes("a"), revision: 2n }).kvs[0]!.value)).toBe("1");
    expect(read(state, { key: bytes("a"), revision: 4n }).kvs).toEqual([]);
    expect(() => read(state, { key: bytes("a"), revision: 6n })).toThrow("future revision");
    apply(state, command({ case: "compact", value: { revision: 3n } }));
    expect(() => read(state, { key: bytes("a"), revision: 2n })).toThrow("has been compacted");
    expect(text(read(state, { key: bytes("a"), revision: 3n }).kvs[0]!.value)).toBe("2");
    const again = apply(state, command({ case: "compact", value: { revision: 3n } }));
    expect(failureOf(again)).toBe("compacted");
    expect(failureOf(apply(state, command({ case: "compact", value: { revision: 9n } })))).toBe(
      "futureRevision",
    );
  });

  test("compaction keeps all changes of its own revision, and nothing of keys deleted before it", () => {
    const state = new CoreState();
    apply(state, put("a", "1"), remove("a"), put("b", "1"));
    const { revisions } = state;
    const changes = (from: number) =>
      revisions
        .changesSince({ revision: from, sub: 0 }, { from: "", to: undefined }, 9)
        .changes.map(({ key, version }) => `${key}/${version}`);
    apply(state, command({ case: "compact", value: { revision: 3n } }));
    expect(changes(3)).toEqual(["a/0", "b/1"]);
    expect(keysOf(read(state, { key: new Uint8Array(1), rangeEnd: new Uint8Array(1) }))).toEqual(["b"]);
    apply(state, command({ case: "compact", value: { revision: 4n } }));
    expect(changes(4)).toEqual(["b/1"]);
    expect([...revisions.histories()].map(([version]) => version!.key)).toEqual(["b"]);
  });

  test("watchers resume from any change still kept, however few they read at a time", () => {
    const state = new CoreState();
    apply(state, put("a", "1"), put("x", "1"), put("b", "1"), remove("a", "c"));
    const { revisions } = state;
    const range = { from: "a", to: "c" };
    const changes = (revision: number, changesMax: number, visitsMax: number) => {
      const found: string[] = [];
      for (let place = { revision, sub: 0 }; place.revision <= revisions.current;) {
        const part = revisions.changesSince(place, range, changesMax, visitsMax);
        for (const { key, modified } of part.changes) found.push(`${key}${modified}`);
        expect(part.changes.length).toBeLessThanOrEqual(changesMax);
        place = part.next;
      }
      return found;
    };
    for (const [most, looks] of [
      [10, Infinity],
      [1, Infinity],
      [10, 1],
    ] as const) {
      expect(changes(2, most, looks)).toEqual(["a2", "b4", "a5", "b5"]);
      expect(changes(5, most, looks)).toEqual(["a5", "b5"]);
    }
  });

  test("changes of a key put and deleted in one revision are reported once, wherever a read of history stops", () => {
    const state = new CoreState();
    const within = (operation: MessageInitShape<typeof RequestOpSchema>) => ({
      request: { case: "requestTxn" as const, value: { success: [operation] } },
    });
    const key = bytes("a");
    const both = [
      within({ request: { case: "requestPut", value: { key } } }),
      within({ request: { case: "requestDeleteRange", value: { key } } }),
    ];
    checkTxn(txn({ success: both }));
    apply(state, put("a", "1"), command({ case: "txn", value: { success: both } }), put("a", "2"));
    const { revisions } = state;
    const found: string[] = [];
    for (let place = { revision: 2, sub: 0 }; place.revision <= revisions.current;) {
      const { changes, next } = revisions.changesSince(place, { from: "a", to: "a\0" }, 2);
      for (const { modified, sub } of changes) found.push(`${modified}.${sub}`);
      place = next;
    }
    expect(found).toEqual(["2.0", "3.0", "3.1", "4.0"]);
  });

  test("the version before a change is not shown once compacted, whether removed or not", () => {
    const state = new CoreState();
    const [change] = apply(state, put("a", "1"), put("a", "2")).changes;
    const [later] = apply(state, put("a", "3")).changes;
    const before = () => [change!, later!].map((each) => state.revisions.before(each)?.modified);
    expect(before()).toEqual([2, 3]);
    apply(state, command({ case: "compact", value: { revision: 3n } }));
    expect(before()).toEqual([undefined, 3]);
    finish(state.revisions.sweep());
    expect(before()).toEqual([undefined, 3]);
  });

  test("changes of one key or few keys are the same as those filtered from all changes", () => {
    const operation = fc.record({ key: fc.constantFrom("a", "b", "b0", "c"), isPut: fc.boolean() });
    fc.assert(
      fc.property(
        fc.array(operation, { maxLength: 40 }),
        fc.nat(1_200),
        fc.nat(60),
        (operations, others, from) => {
          const state = new CoreState();
          for (const { key, isPut } of operations) apply(state, isPut ? put(key, "1") : remove(key));
          for (let count = 0; count < others; count += 1) state.apply(put("other", "1"), 1);
          const { revisions } = state;
          const all = revisions.changesSince({ revision: 0, sub: 0 }, { from: "", to: undefined }, Infinity);
          for (const range of [
            { from: "b", to: "b\0" },
            { from: "a", to: "c" },
          ]) {
            const found = revisions.changesSince({ revision: from, sub: 0 }, range, 1_000).changes;
            const isWanted = (key: string) => key >= range.from && key < range.to;
            expect(found).toEqual(
              all.changes.filter(({ key, modified }) => modified >= from && isWanted(key)),
            );
          }
        },
      ),
      { numRuns: 40 },
    );
  });
});

describe("large values with equal beginnings", () => {
  const state = new CoreState();
  const value = "x".repeat(200_000);
  apply(state, put("a", `${value}2`), put("b", value), put("c", `${value}1`), put("d", `${value}1`));
  const stepsOf = <Result>(steps: Generator<undefined, Result, undefined>) => {
    for (let count = 1; ; count += 1) {
      const step = steps.next();
      if (step.done === true) return { count, result: step.value };
    }
  };

  test("are sorted in steps that do not grow with their size", () => {
    for (const [sortOrder, keys] of [
      [Order.NONE, ["b", "c", "d", "a"]],
      [Order.DESCEND, ["a", "c", "d", "b"]],
    ] as const) {
      const request = create(RangeRequestSchema, { ...all, sortTarget: SortBy.VALUE, sortOrder });
      const { count, result } = stepsOf(state.read(request));
      expect(keysOf(result)).toEqual(keys);
      expect(count).toBeGreaterThan(100);
    }
  });

  test("are compared by a transaction in bounded steps, too", () => {
    const comparison = {
      key: bytes("b"),
      rangeEnd: bytes("e"),
      target: Target.VALUE,
      result: Result.LESS,
      targetUnion: { case: "value" as const, value: bytes(`${value}2`) },
    };
    const { count, result } = stepsOf(state.readTxn(txn({ compare: [comparison] })));
    expect(result.succeeded).toBe(true);
    expect(count).toBeGreaterThan(100);
  });
});

describe("ranges", () => {
  const state = new CoreState();
  apply(state, put("a", "3"), put("b", "2"), put("ba", "9"), put("c", "1"), put("b", "4"));

  test.each([
    ["one key", { key: bytes("b") }, ["b"]],
    ["from a key to before another", { key: bytes("b"), rangeEnd: bytes("c") }, ["b", "ba"]],
    ["from a key on", { key: bytes("b"), rangeEnd: bytes("\0") }, ["b", "ba", "c"]],
    ["an inverted range is empty", { key: bytes("c"), rangeEnd: bytes("a") }, []],
    ["descending keys", { ...all, sortOrder: Order.DESCEND }, ["c", "ba", "b", "a"]],
    [
      "by another target, no order means ascending",
      { ...all, sortTarget: SortBy.VALUE },
      ["c", "a", "b", "ba"],
    ],
    ["the limit applies after the order", { ...all, sortTarget: SortBy.MOD, limit: 2n }, ["a", "ba"]],
    ["bounds on revisions", { ...all, minModRevision: 4n, maxModRevision: 5n }, ["ba", "c"]],
    ["bounds on creation", { ...all, maxCreateRevision: 3n }, ["a", "b"]],
  ])("%s", (_, request, expected) => {
    expect(keysOf(read(state, request))).toEqual(expected);
  });

  test("count is that of the range, whatever the limit; more says that the limit cut off keys", () => {
    expect(read(state, { ...all, limit: 2n })).toMatchObject({ count: 4n, more: true });
    expect(read(state, { ...all, limit: 4n })).toMatchObject({ count: 4n, more: false });
    expect(read(state, { ...all, limit: 1n, countOnly: true })).toMatchObject({
      count: 4n,
      more: false,
      kvs: [],
    });
    expect(text(read(state, { ...all, keysOnly: true }).kvs[0]!.value)).toBe("");
  });

  test("keys are bytes, and need not be text", () => {
    const odd = Uint8Array.from({ length: 20_000 }, (_, index) => index % 256);
    expect(bytesOf(keyOf(odd))).toEqual(odd);
  });
});

describe("transactions", () => {
  const setUp = () => {
    const state = new CoreState();
    apply(state, put("a", "1"), put("a", "2"), grant(5n), put("l", "x", { lease: 5n }));
    return state;
  };
  const key = bytes("a");
  const missing = bytes("missing");

  test.each([
    ["value", { key, target: Target.VALUE, targetUnion: { case: "value", value: bytes("2") } }, true],
    ["version", { key, target: Target.VERSION, targetUnion: { case: "version", value: 2n } }, true],
    ["creation", { key, target: Target.CREATE, targetUnion: { case: "createRevision", value: 3n } }, false],
    ["change", { key, target: Target.MOD, targetUnion: { case: "modRevision", value: 3n } }, true],
    ["lease", { key: bytes("l"), target: Target.LEASE, targetUnion: { case: "lease", value: 5n } }, true],
    ["a missing key has version 0", { key: missing, target: Target.VERSION }, true],
    [
      "a missing key has no value, not even another one",
      {
        key: missing,
        result: Result.NOT_EQUAL,
        target: Target.VALUE,
        targetUnion: { case: "value", value: bytes("2") },
      },
      false,
    ],
    [
      "every key of a range",
      {
        key,
        rangeEnd: bytes("z"),
        result: Result.GREATER,
        target: Target.VERSION,
        targetUnion: { case: "version", value: 1n },
      },
      false,
    ],
  ] as const)("compare: %s", (_, comparison, expected) => {
    const { answer } = apply(setUp(), command({ case: "txn", value: { compare: [comparison] } }));
    expect(answer).toMatchObject({ succeeded: expected });
  });

  test("operations see earlier ones; nested comparisons see the state before the transaction", () => {
    const request = txn({
      success: [
        { request: { case: "requestPut", value: { key, value: bytes("3") } } },
        { request: { case: "requestRange", value: { key } } },
        {
          request: {
            case: "requestTxn",
            value: {
              compare: [{ key, target: Target.VALUE, targetUnion: { case: "value", value: bytes("3") } }],
            },
          },
        },
      ],
    });
    const { answer } = apply(setUp(), command({ case: "txn", value: request }));
    const responses = (answer as { responses: { response: { value: unknown } }[] }).responses;
    expect(responses[1]!.response.value).toMatchObject({ kvs: [{ value: bytes("3"), modRevision: 5n }] });
    expect(responses[2]!.response.value).toMatchObject({ succeeded: false });
  });

  test("with one invalid operation nothing is executed", () => {
    const state = setUp();
    const request = txn({
      success: [
        { request: { case: "requestPut", value: { key, value: bytes("3") } } },
        { request: { case: "requestPut", value: { key: bytes("n"), ignoreValue: true } } },
      ],
    });
    expect(failureOf(apply(state, command({ case: "txn", value: request })))).toBe("keyNotFound");
    expect(text(read(state, { key }).kvs[0]!.value)).toBe("2");
    expect(state.revisions.current).toBe(4);
  });

  test("if key and lease are missing, a put reports the lease, and a transaction the key, as in etcd", () => {
    const state = setUp();
    const value = { key: bytes("n"), lease: 99n, ignoreValue: true };
    const inside = txn({ success: [{ request: { case: "requestPut", value } }] });
    const alone = create(PutRequestSchema, value);
    expect(failureOf(apply(state, command({ case: "txn", value: inside })))).toBe("keyNotFound");
    expect(failureOf(apply(state, command({ case: "put", value: alone })))).toBe("leaseNotFound");
  });

  const op = {
    put: (name: string) => ({ request: { case: "requestPut" as const, value: { key: bytes(name) } } }),
    remove: (name: string, end = "") => ({
      request: { case: "requestDeleteRange" as const, value: { key: bytes(name), rangeEnd: bytes(end) } },
    }),
    txn: (success: MessageInitShape<typeof TxnRequestSchema>["success"], failure: typeof success = []) => ({
      request: { case: "requestTxn" as const, value: { success: success!, failure: failure! } },
    }),
  };

  test.each([
    ["two puts", [op.put("a"), op.put("a")], "duplicateKey"],
    ["a put in a deleted range", [op.remove("a", "c"), op.put("b")], "duplicateKey"],
    ["a put and a put inside", [op.put("a"), op.txn([op.put("a")])], "duplicateKey"],
    ["puts on two ways of which one is taken", [op.txn([op.put("a")], [op.put("a")])], undefined],
    ["puts in two transactions inside", [op.txn([op.put("a")]), op.txn([], [op.put("a")])], "duplicateKey"],
    ["an empty key", [op.put("")], "keyNotProvided"],
    ["129 operations", Array.from({ length: 129 }, (_, index) => op.put(`k${index}`)), "tooManyOperations"],
  ])("%s", (_, success, failure) => {
    expect(refusalOf(() => checkTxn(txn({ success })))).toBe(failure);
  });
});

describe("leases", () => {
  test("a duplicate is refused when it is applied", () => {
    const state = new CoreState();
    expect(failureOf(apply(state, grant(5n), grant(5n)))).toBe("leaseExists");
    const register = command({ case: "registerLease", value: { name: "cart", ttl: 9n } });
    expect(apply(state, register).answer).toMatchObject({ ID: 1n, TTL: 9n });
    expect(failureOf(apply(state, register))).toBe("leaseNameTaken");
    apply(state, revoke(1n));
    expect(failureOf(apply(state, register))).toBeUndefined();
    const chosen = (name: string) => command({ case: "registerLease", value: { name, ttl: 9n, id: 77n } });
    expect(apply(state, chosen("other")).answer).toMatchObject({ ID: 77n });
    expect(failureOf(apply(state, chosen("third")))).toBe("leaseExists");
    expect(failureOf(apply(state, grant(8n, 9_000_000_001n)))).toBe("leaseTtlTooLarge");
  });

  test("a lease's keys are deleted with it in one revision, and only those still attached", () => {
    const state = new CoreState();
    apply(state, grant(5n), grant(6n), put("a", "1", { lease: 5n }), put("b", "1", { lease: 5n }));
    apply(state, put("c", "1", { lease: 5n }), put("c", "2"), put("d", "1", { lease: 5n }));
    apply(state, put("d", "1", { lease: 6n }), put("e", "1", { lease: 5n }), remove("e"), put("e", "2"));
    const { changes, revision, ended } = apply(state, revoke(5n));
    expect(changes.map(({ key, modified }) => [key, modified])).toEqual([
      ["a", revision],
      ["b", revision],
    ]);
    expect(ended).toEqual([5n]);
    expect(keysOf(read(state, all))).toEqual(["c", "d", "e"]);
    expect(failureOf(apply(state, revoke(5n)))).toBe("leaseNotFound");
  });

  test("attaching a key twice has no further effect", () => {
    const state = new CoreState();
    apply(state, grant(5n), put("a", "1", { lease: 5n }), put("a", "2", { lease: 5n }));
    expect([...keysOfLease(state.leases.get(5n)!)]).toEqual(["a"]);
  });

  test("an expiry found in an earlier term is void; a lease that is already gone is skipped", () => {
    const state = new CoreState();
    apply(state, grant(5n), grant(6n), put("a", "1", { lease: 5n }));
    const expire = command({ case: "leaseExpire", value: { ids: [4n, 5n], term: 3n } });
    expect(state.apply(expire, 4).ended).toEqual([]);
    expect(state.apply(expire, 3).ended).toEqual([5n]);
    expect(keysOf(read(state, all))).toEqual([]);
  });

  /** Lease 5 is revoked and granted anew by entries that the leader has not applied yet. */
  const againGranted = () => {
    const state = new CoreState();
    state.apply(grant(5n), 3, 10);
    state.apply(revoke(5n), 3, 12);
    state.apply(grant(5n), 3, 13);
    return restoreState(snapshotPieces(state));
  };

  test("an expiry applies to the lease that the leader saw, not to a later one with the same id", () => {
    const expire = (seen?: bigint) =>
      command({ case: "leaseExpire", value: { ids: [5n], term: 3n, apart: true, seen } });
    expect(againGranted().apply(expire(11n), 3, 14).ended).toEqual([]);
    expect(againGranted().apply(expire(13n), 3, 14).ended).toEqual([5n]);
    // An expiry from an earlier version.
    expect(againGranted().apply(expire(), 3, 14).ended).toEqual([5n]);
    const elsewhere = againGranted();
    elsewhere.becomeNew();
    expect(elsewhere.apply(expire(1n), 3, 2).ended).toEqual([5n]);
  });

  test("so does a written remaining time", () => {
    const left = (state: CoreState, seen: bigint) => {
      const value = { milliseconds: 9n, seen, left: [{ id: 5n, milliseconds: 800n }] };
      state.apply(command({ case: "clusterTime", value }), 3, 14);
      return state.leases.get(5n)!.leftMs;
    };
    expect(left(againGranted(), 11n)).toBeUndefined();
    expect(left(againGranted(), 13n)).toBe(800);
  });
});

describe("snapshots", () => {
  const commands = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant("put"), key: fc.constantFrom("a", "b", "c"), lease: fc.bigInt(0n, 3n) }),
      fc.record({ kind: fc.constant("remove"), key: fc.constantFrom("a", "b", "c"), lease: fc.constant(0n) }),
      fc.record({ kind: fc.constant("grant"), key: fc.constant(""), lease: fc.bigInt(1n, 3n) }),
      fc.record({ kind: fc.constant("revoke"), key: fc.constant(""), lease: fc.bigInt(1n, 3n) }),
      fc.record({ kind: fc.constant("compact"), key: fc.constant(""), lease: fc.bigInt(1n, 12n) }),
    ),
    { maxLength: 40 },
  );
  const toCommand = ({ kind, key, lease }: { kind: string; key: string; lease: bigint }) => {
    if (kind === "put") return put(key, `${lease}`, { lease });
    if (kind === "remove") return remove(key);
    if (kind === "grant") return grant(lease);
    if (kind === "revoke") return revoke(lease);
    return command({ case: "compact", value: { revision: lease } });
  };

  test("a restored state is equal, and evolves equally", () => {
    fc.assert(
      // With 1 byte, each version is a separate piece.
      fc.property(commands, commands, fc.constantFrom(1, 200, undefined), (before, after, pieceBytes) => {
        const state = new CoreState();
        apply(state, put("z", "0"), ...before.map(toCommand));
        const copy = restoreState(snapshotPieces(state, pieceBytes));
        for (const each of after)
          expect(copy.apply(toCommand(each), 1)).toEqual(state.apply(toCommand(each), 1));
        expect([...snapshotPieces(copy)]).toEqual([...snapshotPieces(state)]);
        const everything = { from: "", to: undefined };
        const from = state.revisions.compacted;
        expect(copy.revisions.changesSince({ revision: from, sub: 0 }, everything, 1_000)).toEqual(
          state.revisions.changesSince({ revision: from, sub: 0 }, everything, 1_000),
        );
        expect(copy.revisions.live).toBe(state.revisions.live);
      }),
      { numRuns: 300 },
    );
  });

  test("no piece exceeds the bounds of disks and connections, for any history of a key", () => {
    const state = new CoreState();
    const value = new Uint8Array(1_400_000);
    for (let revision = 2; revision <= 52; revision += 1)
      state.revisions.put("k", value, 0n, revision, state.revisions.newest("k"));
    state.revisions.commit(52);
    const sizes: number[] = [];
    const pieces = function* () {
      for (const piece of snapshotPieces(state)) {
        sizes.push(piece.length);
        yield piece;
      }
    };
    const copy = restoreState(pieces());
    expect(Math.max(...sizes)).toBeLessThan(4 * 1024 * 1024);
    expect(sizes.reduce((sum, size) => sum + size)).toBeGreaterThan(pieceBytesMax);
    expect([...copy.revisions.histories()][0]).toHaveLength(51);
    const long = withFaults({ historyInOnePiece: true }, () => [...snapshotPieces(state)]);
    expect(Math.max(...long.map(({ length }) => length))).toBeGreaterThan(pieceBytesMax);
  });

  test("pieces of one key that do not follow each other are refused", () => {
    const state = new CoreState();
    apply(state, put("a", "1"), put("a", "2"), put("b", "1"), put("b", "2"));
    const [head, a1, a2, b1, b2, last] = [...snapshotPieces(state, 1)] as Uint8Array[];
    for (const pieces of [
      [head, a1, b1, a2, b2, last],
      [head, a2, a1, b1, b2, last],
      [head, a1, b2, b1, a2, last],
    ])
      expect(() => restoreState(pieces as Uint8Array[])).toThrow("not together");
  });

  test("a snapshot that is cut off or lacks a piece is refused", () => {
    const state = new CoreState();
    apply(state, put("a", "1"), put("b", "1"));
    const pieces = [...snapshotPieces(state)];
    expect(() => restoreState(pieces.slice(0, -1))).toThrow(SnapshotError);
    expect(() => restoreState(pieces.toSpliced(1, 1))).toThrow(SnapshotError);
    expect(() => restoreState(pieces.slice(1))).toThrow(SnapshotError);
    expect(() => restoreState([...pieces, pieces[0]!])).toThrow(SnapshotError);
  });
});
