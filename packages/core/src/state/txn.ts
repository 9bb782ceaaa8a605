import { create } from "@bufbuild/protobuf";
import {
  type Compare,
  Compare_CompareResult as Result,
  Compare_CompareTarget as Target,
  type DeleteRangeRequest,
  type DeleteRangeResponse,
  DeleteRangeResponseSchema,
  type PutRequest,
  type PutResponse,
  PutResponseSchema,
  type RequestOp,
  ResponseHeaderSchema,
  type ResponseOp,
  ResponseOpSchema,
  type TxnRequest,
  type TxnResponse,
  TxnResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { AnswerBudget } from "./long-range.js";
import { CoreError } from "./errors.js";
import { keyOf, rangeOf } from "./keys.js";
import { toKeyValue } from "./key-value.js";
import { compareValues, keyValues, readRange, readRevision } from "./range.js";
import type { KeysView, Version } from "./revisions.js";
import { type Steps, unitsPerStep } from "./steps.js";
import { keep } from "./values.js";
import { type Seen, Write } from "./write.js";

export function putKey(write: Write, request: PutRequest): PutResponse {
  checkLease(write, request);
  checkKept(write, request);
  return putResponse(request, put(write, request));
}

function putResponse({ prevKv }: PutRequest, before: Version | undefined): PutResponse {
  return prevKv && before !== undefined
    ? create(PutResponseSchema, { prevKv: toKeyValue(before) })
    : create(PutResponseSchema);
}

/** Returns the previous version. The request must have been checked. */
function put(write: Write, request: PutRequest): Version | undefined {
  const key = keyOf(request.key);
  const before = write.view.getAt(key, write.revision);
  const value = request.ignoreValue ? before!.value : keep(request.value);
  const lease = request.ignoreLease ? before!.lease : request.lease;
  write.put(key, value, lease, before);
  return before;
}

export function* deleteKeys(write: Write, request: DeleteRangeRequest): Steps<DeleteRangeResponse> {
  const gone = yield* write.delete(rangeOf(request.key, request.rangeEnd));
  return yield* deleteResponse(write, request, gone);
}

function* deleteResponse(
  { budget }: Write,
  { prevKv }: DeleteRangeRequest,
  gone: readonly Version[],
): Steps<DeleteRangeResponse> {
  const prevKvs = prevKv ? yield* keyValues(gone, budget) : [];
  return create(DeleteRangeResponseSchema, { deleted: BigInt(gone.length), prevKvs });
}

/**
 * The branches to execute, also of nested transactions. All comparisons see the state from before the first
 * write.
 */
interface Path {
  readonly succeeded: boolean;
  readonly operations: readonly RequestOp[];
  /** Nested paths, by the index of the operation. */
  readonly inner: ReadonlyMap<number, Path>;
}

/** Executes a transaction as a whole, or throws before changing anything. */
export function* runTxn(write: Write, request: TxnRequest): Steps<TxnResponse> {
  const path = yield* choosePath(write.view, request);
  for (const operation of operationsOf(path)) {
    if (operation.case !== "requestPut") continue;
    // If both refuse, etcd reports this reason in a transaction, and the other for a put on its own.
    checkKept(write, operation.value);
    checkLease(write, operation.value);
  }
  return yield* runPath(write, path);
}

/** Executes a read-only transaction (`isReadOnly`). */
export function* readTxn(view: KeysView, request: TxnRequest, budget: AnswerBudget): Steps<TxnResponse> {
  const path = yield* choosePath(view, request);
  return yield* runPath({ view, budget, revision: view.current }, path);
}

function* choosePath(view: KeysView, request: TxnRequest): Steps<Path> {
  let succeeded = true;
  for (const comparison of request.compare) {
    if (!(yield* holds(view, comparison))) {
      succeeded = false;
      break;
    }
  }
  const operations = succeeded ? request.success : request.failure;
  const inner = new Map<number, Path>();
  for (const [index, { request: operation }] of operations.entries()) {
    if (operation.case === "requestTxn") inner.set(index, yield* choosePath(view, operation.value));
  }
  return { succeeded, operations, inner };
}

function* operationsOf({ operations, inner }: Path): Generator<RequestOp["request"]> {
  for (const [index, { request }] of operations.entries()) {
    if (request.case === "requestTxn") yield* operationsOf(inner.get(index)!);
    else yield request;
  }
}

function checkLease({ leases }: Write, { lease }: PutRequest): void {
  if (lease !== 0n && leases.get(lease) === undefined) throw new CoreError("leaseNotFound");
}

/** The value or lease that a put keeps must exist. */
function checkKept({ revision, view }: Write, { ignoreLease, ignoreValue, key }: PutRequest): void {
  const keeps = ignoreValue || ignoreLease;
  if (keeps && view.getAt(keyOf(key), revision) === undefined) throw new CoreError("keyNotFound");
}

/**
 * Reads are checked before the first write, and after the puts, as etcd reports the reasons in that order.
 */
function* runPath(seen: Seen, path: Path): Steps<TxnResponse> {
  for (const operation of operationsOf(path))
    if (operation.case === "requestRange") readRevision(seen.view, operation.value);
  return yield* runOperations(seen, path);
}

function* runOperations(seen: Seen, { succeeded, operations, inner }: Path): Steps<TxnResponse> {
  const responses: ResponseOp[] = [];
  for (let index = 0; index < operations.length; index += 1) {
    const { request } = operations[index]!;
    const response = yield* runOperation(seen, request, inner.get(index));
    if (response !== undefined) responses.push(answerOf(response, seen.revision));
  }
  return create(TxnResponseSchema, { succeeded, responses });
}

type Response = Exclude<ResponseOp["response"], { case: undefined }>;

function answerOf(response: Response, revision: number): ResponseOp {
  // A nested transaction's header is present and empty, as in etcd.
  const isTxn = response.case === "responseTxn";
  response.value.header = create(ResponseHeaderSchema, isTxn ? {} : { revision: BigInt(revision) });
  return create(ResponseOpSchema, { response });
}

/**
 * Executes one operation. Changes are separate from answers, since two of three servers that apply a
 * transaction have no client waiting for the answer.
 *
 * @returns undefined if no client waits for the answer
 */
function* runOperation(
  seen: Seen,
  request: RequestOp["request"],
  inner: Path | undefined,
): Steps<Response | undefined> {
  const { isAwaited } = seen.budget;
  switch (request.case) {
    case "requestRange":
      if (!isAwaited) return undefined;
      return {
        case: "responseRange",
        value: yield* readRange(seen.view, request.value, seen.budget, seen.revision),
      };
    case "requestPut": {
      const before = put(writeOf(seen), request.value);
      return isAwaited ? { case: "responsePut", value: putResponse(request.value, before) } : undefined;
    }
    case "requestDeleteRange": {
      const write = writeOf(seen);
      const gone = yield* write.delete(rangeOf(request.value.key, request.value.rangeEnd));
      if (!isAwaited) return undefined;
      return { case: "responseDeleteRange", value: yield* deleteResponse(write, request.value, gone) };
    }
    case "requestTxn": {
      const value = yield* runOperations(seen, inner!);
      return isAwaited ? { case: "responseTxn", value } : undefined;
    }
    // `checkTxn` has refused all others.
    default:
      throw new CoreError("keyNotFound");
  }
}

function writeOf(seen: Seen): Write {
  if (seen instanceof Write) return seen;
  throw new TypeError("a transaction that only reads cannot write");
}

/**
 * A missing key has version, revisions and lease 0. No comparison of its value is true, not even `NOT_EQUAL`.
 */
function* holds(view: KeysView, comparison: Compare): Steps<boolean> {
  if (comparison.rangeEnd.length === 0) return yield* holdsFor(view.get(keyOf(comparison.key)), comparison);
  const range = rangeOf(comparison.key, comparison.rangeEnd);
  let isEmpty = true;
  let looked = 0;
  for (const version of view.range(range, view.current)) {
    looked += 1;
    if (looked % unitsPerStep === 0) yield;
    if (version === undefined) continue;
    isEmpty = false;
    if (!(yield* holdsFor(version, comparison))) return false;
  }
  return !isEmpty || (yield* holdsFor(undefined, comparison));
}

function* holdsFor(version: Version | undefined, comparison: Compare): Steps<boolean> {
  let difference = differenceOf(version, comparison);
  if (typeof difference === "object") difference = yield* difference;
  if (difference === undefined) return false;
  switch (comparison.result) {
    case Result.EQUAL:
      return difference === 0;
    case Result.NOT_EQUAL:
      return difference !== 0;
    case Result.GREATER:
      return difference > 0;
    case Result.LESS:
      return difference < 0;
    default:
      return true;
  }
}

function differenceOf(
  version: Version | undefined,
  { target, targetUnion }: Compare,
): number | Steps<number> | undefined {
  const asked = <Case extends string>(name: Case) =>
    targetUnion.case === name ? (targetUnion.value as bigint) : 0n;
  switch (target) {
    case Target.VALUE:
      if (version === undefined) return undefined;
      return compareValues(
        version.value,
        targetUnion.case === "value" ? targetUnion.value : new Uint8Array(),
      );
    case Target.CREATE:
      return compare(BigInt(version?.created ?? 0), asked("createRevision"));
    case Target.MOD:
      return compare(BigInt(version?.modified ?? 0), asked("modRevision"));
    case Target.VERSION:
      return compare(BigInt(version?.version ?? 0), asked("version"));
    case Target.LEASE:
      return compare(version?.lease ?? 0n, asked("lease"));
    default:
      return 0;
  }
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
