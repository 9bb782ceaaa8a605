import type {
  DeleteRangeRequest,
  PutRequest,
  RangeRequest,
  RequestOp,
  TxnRequest,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { Caller, Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { CoreError } from "./errors.js";
import { type KeyRange, keyOf, rangeOf, singleKeyRange } from "./keys.js";
import { keysOf, type LeaseState } from "./leases.js";
import { type Steps, unitsPerStep } from "./steps.js";
import type { AuthState } from "./auth-state.js";
import type { Right } from "./permissions.js";

/** The caller; undefined if unauthenticated. */
export type Asker = Pick<Caller, "user" | "revision"> | undefined;

/** Keys attached to leases: revoking a lease deletes them, and attaching a key gives it their lifetime. */
interface AttachedKeys {
  get(id: bigint): Pick<LeaseState, "keys"> | undefined;
}

/** Authorization while authentication is enabled: etcd's rules, in its order. */
export class RightsCheck {
  readonly #auth: AuthState;
  readonly #asker: Asker;

  constructor(auth: AuthState, asker: Asker) {
    this.#auth = auth;
    this.#asker = asker;
  }

  /** @throws CoreError unless all of the keys may be read, or written, by the caller */
  keys(right: Right, range: KeyRange): void {
    const { rights } = this.#auth;
    const permissions = rights.of(this.#current());
    if (permissions === "everything") return;
    if (permissions?.allow(right, range) !== true) throw new CoreError("permissionDenied");
  }

  /** @throws CoreError unless the caller is an authenticated user */
  known(): void {
    if (this.user === "") throw new CoreError("userNameEmpty");
    if (!this.#auth.hasUser(this.user)) throw new CoreError("permissionDenied");
  }

  /** @throws CoreError unless the caller is root */
  root(): void {
    if (this.user === "") throw new CoreError("userNameEmpty");
    this.#auth.user(this.user);
    if (!this.#auth.rights.isRoot(this.user)) throw new CoreError("permissionDenied");
  }

  /** Empty if the caller is unauthenticated. */
  get user(): string {
    return this.#asker?.user ?? "";
  }

  /**
   * Returns the caller's name.
   *
   * @throws CoreError if the authentication is outdated, as in etcd
   */
  #current(): string {
    if (this.#asker === undefined || this.#asker.user === "") throw new CoreError("userNameEmpty");
    if (this.#asker.revision < this.#auth.revision) throw new CoreError("authRevisionOld");
    return this.#asker.user;
  }

  range({ key, rangeEnd }: RangeRequest): void {
    this.keys("read", rangeOf(key, rangeEnd));
  }

  put({ key, prevKv }: PutRequest): void {
    const range = singleKeyRange(keyOf(key));
    this.keys("write", range);
    if (prevKv) this.keys("read", range);
  }

  deletion({ key, prevKv, rangeEnd }: DeleteRangeRequest): void {
    const range = rangeOf(key, rangeEnd);
    this.keys("write", range);
    if (prevKv) this.keys("read", range);
  }

  /** Checks both branches: checking only the one executed would reveal keys. */
  txn({ compare, failure, success }: TxnRequest): void {
    for (const { key, rangeEnd } of compare) this.keys("read", rangeOf(key, rangeEnd));
    for (const { request } of success) this.#operation(request);
    for (const { request } of failure) this.#operation(request);
  }

  #operation(request: RequestOp["request"]): void {
    if (request.case === "requestRange") this.range(request.value);
    else if (request.case === "requestPut") this.put(request.value);
    else if (request.case === "requestDeleteRange") this.deletion(request.value);
    else if (request.case === "requestTxn") this.txn(request.value);
  }

  /** Checks all keys attached to the lease, in steps. */
  *attached(right: Right, leases: AttachedKeys, id: bigint): Steps<void> {
    let looked = 0;
    const lease = leases.get(id);
    for (const key of lease === undefined ? [] : keysOf(lease)) {
      this.keys(right, singleKeyRange(key));
      looked += 1;
      if (looked % unitsPerStep === 0) yield;
    }
  }
}

/** Checks a command by the keys named in it. */
export function checkNamed(check: RightsCheck, { case: kind, value }: Command["body"]): void {
  switch (kind) {
    case "put":
      return check.put(value);
    case "deleteRange":
      return check.deletion(value);
    case "txn":
      return check.txn(value);
    case "compact":
    case "leaseGrant":
    case "registerLease":
    case "leaseRevoke":
      return check.known();
    // Authentication needs no authenticated caller.
    case "authenticate":
      return;
    default:
      return check.root();
  }
}

/**
 * Checks a client's command when it is applied.
 *
 * @throws CoreError before anything has changed
 */
export function* checkCommand(auth: AuthState, leases: AttachedKeys, { body, caller }: Command): Steps<void> {
  // Checked before it was proposed. Raft has changed its members with this entry in any case.
  if (body.case === "memberChange") return;
  const check = new RightsCheck(auth, caller);
  checkNamed(check, body);
  for (const id of attachedTo(body)) yield* check.attached("write", leases, id);
}

/** Returns the leases that the command ends or attaches keys to, each once. */
function attachedTo({ case: kind, value }: Command["body"]): Set<bigint> {
  const ids = new Set<bigint>();
  if (kind === "leaseRevoke") ids.add(value.ID);
  if (kind === "put") ids.add(value.lease);
  if (kind === "txn") addLeases(value, ids);
  return ids;
}

function addLeases({ failure, success }: TxnRequest, ids: Set<bigint>): void {
  for (const operations of [success, failure])
    for (const { request } of operations) {
      if (request.case === "requestPut") ids.add(request.value.lease);
      else if (request.case === "requestTxn") addLeases(request.value, ids);
    }
}
