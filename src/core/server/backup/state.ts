import { fromBinary } from "@bufbuild/protobuf";
import { RoleSchema, UserSchema } from "../../gen/etcd/authpb_pb.js";
import type { AuthState } from "../../state/auth-state.js";
import { ttlSecondsMax } from "../../state/leases.js";
import { CoreState } from "../../state/state.js";
import { type Steps, unitsPerStep } from "../../state/steps.js";
import { owned } from "../../state/values.js";
import { BoltError, type BoltFile, type Leaf } from "./bolt/read.js";
import { readLease, readRevision, readVersion } from "./records.js";

/** What a database has is more than may be kept in memory. */
export class TooLargeError extends Error {
  override readonly name = "TooLargeError";
}

type Buckets = ReadonlyMap<string, Iterable<Leaf>>;

/**
 * The state that a database of etcd, or of ours, has. Of members and alarms there is nothing: whoever they are
 * of is not there where it is restored.
 *
 * @param bytesMax what the state may take in memory
 * @throws BoltError, TooLargeError
 */
export function* stateOf(file: BoltFile, bytesMax: number): Steps<CoreState> {
  const buckets: Buckets = new Map(Array.from(file.buckets(), ({ name, items }) => [name, items]));
  if (!buckets.has("key") || !buckets.has("meta")) throw new BoltError("it is no database of etcd");
  const state = new CoreState();
  yield* readLeases(state, buckets);
  yield* readKeys(state, buckets, bytesMax);
  yield* readCompaction(state, buckets);
  yield* attachKeys(state);
  yield* readAuth(state.auth, buckets);
  if (state.bytes > bytesMax) throw new TooLargeError();
  return state;
}

/** In steps, with what cannot be read told as damage. */
function* each(buckets: Buckets, name: string, take: (key: Buffer, value: Buffer) => void): Steps<void> {
  let count = 0;
  for (const { key, value } of buckets.get(name) ?? []) {
    count += 1;
    if (count % unitsPerStep === 0) yield;
    try {
      take(key, value);
    } catch (error) {
      if (error instanceof BoltError || error instanceof TooLargeError) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new BoltError(`what stands at ${key.toString("hex")} in ${name} cannot be read: ${why}`);
    }
  }
}

function* readLeases({ leases }: CoreState, buckets: Buckets): Steps<void> {
  const names = new Map<bigint, string>();
  yield* each(buckets, "leasehold", (key, value) => names.set(key.readBigInt64BE(0), value.toString()));
  yield* each(buckets, "lease", (key, value) => {
    const { id, ttl } = readLease(value);
    if (key.length !== 8 || key.readBigInt64BE(0) !== id || id === 0n) throw new Error("it is another lease");
    if (ttl < 0n || ttl > ttlSecondsMax) throw new Error(`it has ${ttl} seconds`);
    leases.grant(id, Number(ttl), names.get(id));
  });
}

function* readKeys(state: CoreState, buckets: Buckets, bytesMax: number): Steps<void> {
  const { revisions } = state;
  let count = 0;
  yield* each(buckets, "key", (key, value) => {
    const revision = readRevision(key);
    if (revision === undefined || revision.main < 1) throw new Error("it is no revision");
    revisions.restore([readVersion(revision, value)]);
    revisions.current = Math.max(revisions.current, revision.main);
    count += 1;
    if (count % unitsPerStep === 0 && state.bytes > bytesMax) throw new TooLargeError();
  });
}

/** One that was begun is finished, as etcd does. */
function* readCompaction({ revisions }: CoreState, buckets: Buckets): Steps<void> {
  let compacted = -1;
  yield* each(buckets, "meta", (key, value) => {
    if (!["finishedCompactRev", "scheduledCompactRev"].includes(key.toString())) return;
    const revision = readRevision(value);
    if (revision === undefined) throw new Error("it is no revision");
    compacted = Math.max(compacted, revision.main);
  });
  if (compacted < 0) return;
  // What was compacted last may have left nothing.
  revisions.current = Math.max(revisions.current, compacted);
  revisions.compact(compacted);
  yield* revisions.sweep();
}

/** A key whose lease is not there stays, as at etcd. */
function* attachKeys({ leases, revisions }: CoreState): Steps<void> {
  let count = 0;
  for (const version of revisions.range({ from: "", to: undefined }, revisions.current)) {
    count += 1;
    if (count % unitsPerStep === 0) yield;
    if (version !== undefined && leases.get(version.lease) !== undefined)
      leases.attach(version.key, version.lease, 0n);
  }
}

function* readAuth(auth: AuthState, buckets: Buckets): Steps<void> {
  yield* each(buckets, "auth", (key, value) => {
    if (key.toString() === "authEnabled") auth.isEnabled = value[0] === 1;
    if (key.toString() === "authRevision") auth.revision = value.readBigUInt64BE(0);
  });
  yield* each(buckets, "authUsers", (key, value) => {
    const { options, password, roles } = fromBinary(UserSchema, value);
    const secret = options?.noPassword === true ? new Uint8Array(0) : owned(password);
    auth.restore({ users: [{ name: key.toString(), secret, roles: [...roles].sort() }] });
  });
  yield* each(buckets, "authRoles", (key, value) => {
    const { keyPermission } = fromBinary(RoleSchema, value);
    const permissions = keyPermission.map((each) => ({
      ...each,
      key: owned(each.key),
      rangeEnd: owned(each.rangeEnd),
    }));
    auth.restore({ roles: [{ name: key.toString(), permissions }] });
  });
}
