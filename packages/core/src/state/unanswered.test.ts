import { create, type MessageInitShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { TxnRequestSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { checkTxn } from "./check.js";
import { CoreError } from "./errors.js";
import { bytesOf } from "./keys.js";
import { frozen, snapshotPieces } from "./snapshot.js";
import { CoreState } from "./state.js";
import { finish } from "./steps.js";

const key = fc.constantFrom(..."abcd").map(bytesOf);
const lease = fc.constantFrom(0n, 0n, 1n, 2n);
const put = fc.record({
  key,
  value: key,
  lease,
  prevKv: fc.boolean(),
  ignoreValue: fc.nat(5).map((n) => n === 0),
});
const deletion = fc.record({
  key,
  rangeEnd: fc.constantFrom(bytesOf(""), bytesOf("\0")),
  prevKv: fc.boolean(),
});
const range = fc.record({
  key,
  rangeEnd: fc.constantFrom(bytesOf(""), bytesOf("\0")),
  revision: fc.constantFrom(0n, 3n, 9n),
});
interface Txn {
  readonly compare: readonly object[];
  readonly success: readonly object[];
  readonly failure: readonly object[];
}
const { txn } = fc.letrec<{ txn: Txn; operation: object }>((tie) => ({
  operation: fc.oneof(
    { maxDepth: 2 },
    put.map((value) => ({ request: { case: "requestPut", value } })),
    deletion.map((value) => ({ request: { case: "requestDeleteRange", value } })),
    range.map((value) => ({ request: { case: "requestRange", value } })),
    tie("txn").map((value) => ({ request: { case: "requestTxn", value } })),
  ),
  txn: fc.record({
    compare: fc.array(
      key.map((at) => ({ key: at, targetUnion: { case: "version", value: 1n } })),
      { maxLength: 1 },
    ),
    success: fc.array(tie("operation"), { maxLength: 4 }),
    failure: fc.array(tie("operation"), { maxLength: 4 }),
  }),
}));
/** Other transactions are never in the log. */
function isTaken(value: Txn): boolean {
  try {
    checkTxn(create(TxnRequestSchema, value as MessageInitShape<typeof TxnRequestSchema>));
    return true;
  } catch {
    return false;
  }
}
const command = fc
  .oneof(
    { weight: 6, arbitrary: txn.filter(isTaken).map((value) => ({ case: "txn", value })) },
    { weight: 2, arbitrary: put.map((value) => ({ case: "put", value })) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(1n, 2n).map((ID) => ({ case: "leaseGrant", value: { ID, TTL: 60n } })),
    },
    { weight: 1, arbitrary: fc.constantFrom(1n, 2n).map((ID) => ({ case: "leaseRevoke", value: { ID } })) },
  )
  .map((body) => create(CommandSchema, { body } as MessageInitShape<typeof CommandSchema>));

const hex = (state: CoreState) =>
  [...snapshotPieces(frozen(state))].map((piece) => Buffer.from(piece).toString("hex"));

test("a command has the same effect or refusal, whether or not a client waits for its answer", () => {
  const seen = { refused: 0, txns: 0 };
  fc.assert(
    fc.property(fc.array(command, { minLength: 3, maxLength: 14 }), (commands) => {
      const [awaited, other] = [new CoreState(), new CoreState()];
      for (const one of commands) {
        const { answer, ...changed } = finish(awaited.applying(one, 1, 1));
        const { answer: none, ...changedThere } = finish(other.applying(one, 1, 1, -1));
        expect(none).toBeUndefined();
        expect(changedThere).toEqual(changed);
        if (answer instanceof CoreError) seen.refused += 1;
        else if (one.body.case === "txn" && changed.changes.length > 1) seen.txns += 1;
      }
      expect(hex(other)).toEqual(hex(awaited));
    }),
    { numRuns: 400 },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(25);
});
