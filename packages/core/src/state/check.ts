import type {
  DeleteRangeRequest,
  PutRequest,
  RangeRequest,
  RequestOp,
  TxnRequest,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import {
  RangeRequest_SortOrder as Order,
  RangeRequest_SortTarget as Target,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { CoreError } from "./errors.js";
import { type Key, type KeyRange, contains, keyOf, rangeOf } from "./keys.js";

/**
 * Validation without the state, so that an invalid request is refused before it takes an entry of the log.
 */

/**
 * etcd's bound on the operations, or comparisons, of a transaction. Nested transactions share it here. In
 * etcd each path through them has the full bound, so a request of 1 MB may have a hundred thousand
 * operations.
 */
export const operationsMax = 128;

/** The greatest configurable bound: puts are compared with deletions one by one. */
export const operationsMost = 1_024;

/**
 * Nesting depth of transactions. Each level is two messages deep, and decoders accept 100
 * (`@bufbuild/protobuf`).
 */
export const nestingMax = 32;

export function checkRange(request: RangeRequest): void {
  if (request.key.length === 0) throw new CoreError("keyNotProvided");
  const isKnown = (values: Record<string, number>, value: number) => Object.values(values).includes(value);
  if (!isKnown(Order, request.sortOrder) || !isKnown(Target, request.sortTarget))
    throw new CoreError("invalidSortOption");
}

export function checkPut(request: PutRequest): void {
  if (request.key.length === 0) throw new CoreError("keyNotProvided");
  if (request.ignoreValue && request.value.length > 0) throw new CoreError("valueProvided");
  if (request.ignoreLease && request.lease !== 0n) throw new CoreError("leaseProvided");
}

export function checkDeleteRange(request: DeleteRangeRequest): void {
  if (request.key.length === 0) throw new CoreError("keyNotProvided");
}

export function checkTxn(request: TxnRequest, most: number = operationsMax): void {
  checkSize(request, most, 0);
  checkShape(request);
  checkDuplicates(request);
}

/** Returns the rest of the budget. All other functions only see transactions that have passed this check. */
function checkSize({ compare, success, failure }: TxnRequest, budget: number, depth: number): number {
  let left = budget - Math.max(compare.length, success.length, failure.length);
  if (left < 0 || depth > nestingMax) throw new CoreError("tooManyOperations");
  for (const operations of [success, failure])
    for (const { request } of operations)
      if (request.case === "requestTxn") {
        left = checkSize(request.value, left, depth + 1);
      }
  return left;
}

function checkShape({ compare, success, failure }: TxnRequest): void {
  if (compare.some(({ key }) => key.length === 0)) throw new CoreError("keyNotProvided");
  for (const operations of [success, failure])
    for (const { request: operation } of operations) {
      if (operation.case === "requestRange") checkRange(operation.value);
      else if (operation.case === "requestPut") checkPut(operation.value);
      else if (operation.case === "requestDeleteRange") checkDeleteRange(operation.value);
      else if (operation.case === "requestTxn") checkShape(operation.value);
      else throw new CoreError("keyNotFound");
    }
}

/** Whether a command may grow the state. Such commands are refused during a space alarm, as in etcd. */
export function needsRoom({ case: kind, value }: Command["body"]): boolean {
  if (kind === "txn") return mayPut(value);
  return kind === "put" || kind === "leaseGrant" || kind === "registerLease";
}

/**
 * Whether a command changes keys, their history or leases. Such commands are refused during a corrupt alarm,
 * as in etcd.
 */
export function changesContent({ case: kind }: Command["body"]): boolean {
  switch (kind) {
    case "put":
    case "deleteRange":
    case "txn":
    case "compact":
    case "leaseGrant":
    case "registerLease":
    case "leaseRevoke":
      return true;
    default:
      return false;
  }
}

function mayPut({ success, failure }: TxnRequest): boolean {
  return [success, failure].some((operations) =>
    operations.some(({ request }) =>
      request.case === "requestTxn" ? mayPut(request.value) : request.case === "requestPut",
    ),
  );
}

/** Whether neither branch writes: then the transaction needs no entry of the log. */
export function isReadOnly({ success, failure }: TxnRequest): boolean {
  return everyRead(success, () => true) && everyRead(failure, () => true);
}

/**
 * Whether all reads of a transaction are serializable. False if it has none, as then it hasn't asked for
 * that.
 */
export function isSerializable({ success, failure }: TxnRequest): boolean {
  const isContent = ({ serializable }: RangeRequest) => serializable;
  if (success.length + failure.length === 0) return false;
  return everyRead(success, isContent) && everyRead(failure, isContent);
}

function everyRead(operations: readonly RequestOp[], holds: (read: RangeRequest) => boolean): boolean {
  return operations.every(({ request }) => {
    if (request.case === "requestRange") return holds(request.value);
    if (request.case !== "requestTxn") return false;
    return everyRead(request.value.success, holds) && everyRead(request.value.failure, holds);
  });
}

interface Touched {
  readonly puts: Set<Key>;
  readonly deletions: KeyRange[];
}

/**
 * No key may be written twice in one revision, by two puts or by a put and a deletion, in branches that can
 * both be executed.
 */
function checkDuplicates(request: TxnRequest): void {
  touchedBy(request.success);
  touchedBy(request.failure);
}

function touchedBy(operations: readonly RequestOp[]): Touched {
  const all: Touched = { puts: new Set(), deletions: [] };
  for (const { request: operation } of operations) {
    if (operation.case === "requestDeleteRange")
      all.deletions.push(rangeOf(operation.value.key, operation.value.rangeEnd));
  }
  for (const { request: operation } of operations) {
    if (operation.case === "requestTxn") merge(all, touchedByTxn(operation.value));
  }
  for (const { request: operation } of operations) {
    if (operation.case === "requestPut") addPut(all, keyOf(operation.value.key));
  }
  return all;
}

/** Only one of the two branches is executed: they may write the same keys. */
function touchedByTxn(request: TxnRequest): Touched {
  const success = touchedBy(request.success);
  const failure = touchedBy(request.failure);
  return {
    puts: new Set([...success.puts, ...failure.puts]),
    deletions: [...success.deletions, ...failure.deletions],
  };
}

function merge(all: Touched, inner: Touched): void {
  for (const key of inner.puts) addPut(all, key);
  for (const range of inner.deletions) all.deletions.push(range);
}

function addPut(all: Touched, key: Key): void {
  if (all.puts.has(key) || all.deletions.some((range) => contains(range, key)))
    throw new CoreError("duplicateKey");
  all.puts.add(key);
}
