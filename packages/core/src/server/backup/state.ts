import { fromBinary } from "@bufbuild/protobuf";
import { RoleSchema, UserSchema } from "leasehold/etcd/gen/etcd/authpb_pb.js";
import { grantBytes, recordBytes } from "../../state/auth-state.js";
import { ttlSecondsMax } from "../../state/leases.js";
import type { Version } from "../../state/revisions.js";
import { CoreState } from "../../state/state.js";
import { type Steps, unitsPerStep } from "../../state/steps.js";
import { owned } from "../../state/values.js";
import { BoltError, type BoltFile, type Leaf } from "./bolt/read.js";
import { fieldsOf, readLease, readRevision, readVersion, revisionMax } from "./records.js";

/** The content of a database exceeds the memory bound. */
export class TooLargeError extends Error {
  override readonly name = "TooLargeError";
}

/**
 * Bound of a key with its value, and of a role with its permissions: pieces of snapshots may be twice as
 * large.
 */
const recordBytesMax = 32 * 1024 * 1024;

/** Memory of a lease's name, until its lease is read, in addition to its own bytes. */
const namedBytes = 100;

type Buckets = ReadonlyMap<string, Iterable<Leaf>>;

/**
 * Reads the state in a database made by etcd or by a core. Members and alarms are omitted, since those do not
 * exist where it is restored.
 *
 * @param bytesMax memory bound of the state
 * @throws BoltError, TooLargeError
 */
export function* stateOf(file: BoltFile, bytesMax: number): Steps<CoreState> {
  const buckets: Buckets = new Map(Array.from(file.buckets(), ({ name, items }) => [name, items]));
  if (!buckets.has("key") || !buckets.has("meta")) throw new BoltError("it is no database of etcd");
  const reading = new Reading(buckets, bytesMax);
  yield* reading.leases();
  yield* reading.keys();
  yield* reading.compaction();
  yield* reading.attachKeys();
  yield* reading.auth();
  return reading.state;
}

class Reading {
  readonly state = new CoreState();
  readonly #buckets: Buckets;
  readonly #bytesMax: number;

  constructor(buckets: Buckets, bytesMax: number) {
    this.#buckets = buckets;
    this.#bytesMax = bytesMax;
  }

  /** Reads a bucket in steps, within the memory bound. Reports unreadable items as damage. */
  *#each(name: string, take: (key: Buffer, value: Buffer) => void): Steps<void> {
    let count = 0;
    for (const { key, value } of this.#buckets.get(name) ?? []) {
      count += 1;
      if (count % unitsPerStep === 0) yield;
      try {
        if (key.length + value.length > recordBytesMax)
          throw new Error(`it has more than ${recordBytesMax} bytes`);
        take(key, value);
      } catch (error) {
        if (error instanceof BoltError || error instanceof TooLargeError) throw error;
        const why = error instanceof Error ? error.message : String(error);
        throw new BoltError(`the record ${key.toString("hex", 0, 64)} in ${name} cannot be read: ${why}`);
      }
      this.#takeRoom(0);
    }
  }

  /** @throws TooLargeError if there is no room for this many more bytes */
  #takeRoom(bytes: number): void {
    if (this.state.bytes + bytes > this.#bytesMax) throw new TooLargeError();
  }

  /** Reserves the memory of a message before it is decoded. */
  #takeRoomFor(message: Uint8Array, bytesPerField: number): void {
    const left = this.#bytesMax - this.state.bytes;
    if (fieldsOf(message, left / bytesPerField) * bytesPerField > left) throw new TooLargeError();
  }

  *leases(): Steps<void> {
    const names = new Map<bigint, string>();
    let nameBytes = 0;
    yield* this.#each("leasehold", (key, value) => {
      nameBytes += namedBytes + value.length;
      this.#takeRoom(nameBytes);
      names.set(idOf(key), textOf(value));
    });
    yield* this.#each("lease", (key, value) => {
      const { id, ttl } = readLease(value);
      if (idOf(key) !== id || id === 0n) throw new Error("it is another lease");
      if (ttl < 0n || ttl > ttlSecondsMax) throw new Error(`it has ${ttl} seconds`);
      this.state.leases.grant(id, Number(ttl), names.get(id));
    });
  }

  *keys(): Steps<void> {
    const { revisions } = this.state;
    yield* this.#each("key", (key, value) => {
      const revision = readRevision(key);
      if (revision === undefined || revision.main < 1) throw new Error("it is no revision");
      revisions.restore([readVersion(revision, value)]);
      revisions.current = Math.max(revisions.current, revision.main);
    });
  }

  /** Finishes a compaction that was begun, as etcd does. */
  *compaction(): Steps<void> {
    const { revisions } = this.state;
    let compacted = -1;
    yield* this.#each("meta", (key, value) => {
      if (!["finishedCompactRev", "scheduledCompactRev"].includes(key.toString("latin1"))) return;
      const revision = readRevision(value);
      if (revision === undefined) throw new Error("it is no revision");
      compacted = Math.max(compacted, revision.main);
    });
    if (compacted < 0) return;
    // The last compaction may have left no versions.
    revisions.current = Math.max(revisions.current, compacted);
    revisions.compact(compacted);
    yield* revisions.sweep();
  }

  /**
   * A key whose lease does not exist is kept, as in etcd, but detached: otherwise a server restored from a
   * snapshot would attach it to a lease granted later under the same id, and the others would not.
   */
  *attachKeys(): Steps<void> {
    const { leases, revisions } = this.state;
    const orphans: Version[] = [];
    let count = 0;
    for (const version of revisions.range({ from: "", to: undefined }, revisions.current)) {
      count += 1;
      if (count % unitsPerStep === 0) yield;
      if (version === undefined || version.lease === 0n) continue;
      if (leases.get(version.lease) === undefined) orphans.push(version);
      else leases.attach(version.key, version.lease, 0n);
    }
    for (const [index, version] of orphans.entries()) {
      if (index % unitsPerStep === 0) yield;
      revisions.withoutLease(version);
    }
  }

  *auth(): Steps<void> {
    const { auth } = this.state;
    yield* this.#each("auth", (key, value) => {
      const name = key.toString("latin1");
      if (name === "authEnabled") {
        if (value.length !== 1 || value[0]! > 1)
          throw new Error("it says neither that authentication is on nor that it is off");
        auth.isEnabled = value[0] === 1;
      }
      if (name !== "authRevision") return;
      const revision = value.readBigUInt64BE(0);
      if (revision > revisionMax) throw new Error("it is no revision");
      // The revision is 0 if authentication was never changed in etcd.
      auth.revision = revision > 1n ? revision : 1n;
    });
    yield* this.#each("authUsers", (key, value) => {
      this.#takeRoomFor(value, grantBytes);
      const { name, options, password, roles } = fromBinary(UserSchema, value, known);
      if (!key.equals(name)) throw new Error("it is another user");
      const secret = options?.noPassword === true ? new Uint8Array(0) : owned(password);
      auth.restore({ users: [{ name: textOf(key), secret, roles: [...new Set(roles)].sort() }] });
    });
    yield* this.#each("authRoles", (key, value) => {
      this.#takeRoomFor(value, recordBytes);
      const { keyPermission, name } = fromBinary(RoleSchema, value, known);
      if (!key.equals(name)) throw new Error("it is another role");
      const permissions = keyPermission.map((each) => ({
        ...each,
        key: owned(each.key),
        rangeEnd: owned(each.rangeEnd),
      }));
      auth.restore({ roles: [{ name: textOf(key), permissions }] });
    });
  }
}

/** Unknown fields are dropped, since they may be anything. */
const known = { readUnknownFields: false } as const;

function idOf(key: Buffer): bigint {
  if (key.length !== 8) throw new Error("it is no id");
  return key.readBigInt64BE(0);
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Refuses invalid UTF-8: otherwise two names that have it could become the same. */
function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}
