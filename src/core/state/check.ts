import type {
  DeleteRangeRequest,
  PutRequest,
  RangeRequest,
  RequestOp,
  TxnRequest,
} from "../gen/etcd/rpc_pb.js";
import { RangeRequest_SortOrder as Order, RangeRequest_SortTarget as Target } from "../gen/etcd/rpc_pb.js";
import { CoreError } from "./errors.js";
import { type Key, type KeyRange, contains, keyOf, rangeOf } from "./keys.js";

/** What can be said of a request without the state: it is refused before it costs an entry of the log. */

/** etcd's bound on the operations, or comparisons, of a transaction. */
export const operationsMax = 128;

/** Transactions in transactions: etcd has no bound but its message size; recursion needs one. */
const nestingMax = 64;

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

export function checkTxn(request: TxnRequest): void {
  checkShape(request, 0);
  checkDuplicates(request);
}

function checkShape(request: TxnRequest, depth: number): void {
  const most = Math.max(request.compare.length, request.success.length, request.failure.length);
  if (most > operationsMax || depth > nestingMax) throw new CoreError("tooManyOperations");
  if (request.compare.some(({ key }) => key.length === 0)) throw new CoreError("keyNotProvided");
  for (const { request: operation } of [...request.success, ...request.failure]) {
    if (operation.case === "requestRange") checkRange(operation.value);
    else if (operation.case === "requestPut") checkPut(operation.value);
    else if (operation.case === "requestDeleteRange") checkDeleteRange(operation.value);
    else if (operation.case === "requestTxn") checkShape(operation.value, depth + 1);
    else throw new CoreError("keyNotFound");
  }
}

interface Touched {
  readonly puts: Set<Key>;
  readonly deletions: KeyRange[];
}

/** No key may be written twice in one revision: by two puts, or by a put and a deletion, on ways that can both be taken. */
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

/** One of the two ways is taken: they may write the same keys. */
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
  all.deletions.push(...inner.deletions);
}

function addPut(all: Touched, key: Key): void {
  if (all.puts.has(key) || all.deletions.some((range) => contains(range, key)))
    throw new CoreError("duplicateKey");
  all.puts.add(key);
}
