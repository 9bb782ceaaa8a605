import { create, toBinary } from "@bufbuild/protobuf";
import { AlarmMemberSchema } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import { RoleSchema, UserSchema } from "leasehold/etcd/gen/etcd/authpb_pb.js";
import type { FrozenState } from "../../replica/frozen-state.js";
import { allAlarms } from "../../state/alarms.js";
import type { Role, User } from "../../state/auth-state.js";
import type { LeaseState } from "../../state/leases.js";
import type { CoreMember } from "../../state/members.js";
import { inOrder, isDeletion, type Version } from "../../state/revisions.js";
import type { SnapshotSource } from "../../state/snapshot.js";
import { sortInSteps, type Steps, unitsPerStep } from "../../state/steps.js";
import type { Item } from "./bolt/tree.js";
import type { Bucket } from "./bolt/write.js";
import { idBytes, keyValueBytes, keyValueSize, leaseBytes, revisionBytes, revisionOf } from "./records.js";

/** The etcd version that has these buckets. */
const clusterVersion = "3.4.0";

/**
 * Represents a state in etcd's format: its buckets, ordered by name. One is our own, with names of leases:
 * etcd keeps it, but does not read it.
 */
export function* bucketsOf({ meta, source }: FrozenState): Steps<readonly Bucket[]> {
  const { auth, members, revisions } = source;
  return [
    small("alarm", alarmsOf(source)),
    small("auth", [
      ...(auth.isEnabled ? [pair("authEnabled", Buffer.of(1))] : []),
      pair("authRevision", idBytes(auth.revision)),
    ]),
    small("authRoles", auth.roles().map(roleOf)),
    small("authUsers", auth.users().map(userOf)),
    small("cluster", [pair("clusterVersion", Buffer.from(clusterVersion))]),
    keysBucket(yield* inRevisionOrder(source)),
    ...(yield* leaseBuckets(source)),
    small("members", members.all.map(memberOf)),
    small(
      "members_removed",
      [...members.removed].map((id) => pair(id.toString(16), Buffer.from("removed"))),
    ),
    small("meta", [
      pair("consistent_index", idBytes(BigInt(meta.index))),
      ...compactionOf(revisions.compacted),
    ]),
  ];
}

function pair(key: string | Uint8Array, value: Uint8Array): Item {
  const bytes = typeof key === "string" ? Buffer.from(key) : key;
  return { keyBytes: bytes.length, valueBytes: value.length, key: () => bytes, value: () => value };
}

function small(name: string, pairs: readonly Item[]): Bucket {
  const sorted = [...pairs].sort((one, other) => Buffer.compare(one.key(), other.key()));
  return { name, items: () => sorted };
}

/** Members with alarms, and their kinds. */
function alarmsOf(source: SnapshotSource): Item[] {
  const nothing = new Uint8Array(0);
  return allAlarms(source).map((alarm) =>
    pair(toBinary(AlarmMemberSchema, create(AlarmMemberSchema, alarm)), nothing),
  );
}

/** etcd cannot verify passwords with our secrets, so no user can log in there. */
function userOf({ name, roles, secret }: User): Item {
  const key = Buffer.from(name);
  const options = { noPassword: secret.length === 0 };
  const user = create(UserSchema, { name: key, password: secret, roles: [...roles], options });
  return pair(key, toBinary(UserSchema, user));
}

function roleOf({ name, permissions }: Role): Item {
  const key = Buffer.from(name);
  return pair(key, toBinary(RoleSchema, create(RoleSchema, { name: key, keyPermission: [...permissions] })));
}

/** JSON whose ids are numbers that JavaScript cannot represent exactly. */
function memberOf({ clientUrls, id, learner, name, peerUrls }: CoreMember): Item {
  const rest = {
    peerURLs: peerUrls,
    ...(learner ? { isLearner: true } : {}),
    ...(name === "" ? {} : { name }),
    ...(clientUrls.length === 0 ? {} : { clientURLs: clientUrls }),
  };
  return pair(id.toString(16), Buffer.from(`{"id":${id},${JSON.stringify(rest).slice(1)}`));
}

/** The file has no compacted versions, whether they have been removed here or not. */
function compactionOf(compacted: number): Item[] {
  if (compacted < 0) return [];
  const revision = revisionOf(compacted, 0);
  return [pair("finishedCompactRev", revision), pair("scheduledCompactRev", revision)];
}

/**
 * All readable changes, oldest first. The state's own ordered list does not reach back as far, so everything
 * is sorted.
 */
function* inRevisionOrder({ revisions }: SnapshotSource): Steps<readonly Version[]> {
  const versions: Version[] = [];
  for (const history of revisions.histories()) {
    for (const version of history) {
      versions.push(version);
      if (versions.length % unitsPerStep === 0) yield;
    }
  }
  return yield* sortInSteps(versions, inOrder);
}

function keysBucket(versions: readonly Version[]): Bucket {
  return {
    name: "key",
    *items() {
      for (const version of versions) yield new VersionItem(version);
    },
  };
}

class VersionItem implements Item {
  readonly #version: Version;

  constructor(version: Version) {
    this.#version = version;
  }

  get keyBytes(): number {
    return isDeletion(this.#version) ? revisionBytes + 1 : revisionBytes;
  }

  get valueBytes(): number {
    return keyValueSize(this.#version);
  }

  key(): Uint8Array {
    const { modified, sub } = this.#version;
    return revisionOf(modified, sub, isDeletion(this.#version));
  }

  value(): Uint8Array {
    return keyValueBytes(this.#version);
  }
}

/**
 * Leases, and the names of registered ones. Remaining times are omitted: restored leases start again with
 * their full time, but etcd would refresh them only for the remaining time.
 */
function* leaseBuckets({ leases }: SnapshotSource): Steps<readonly Bucket[]> {
  const all: LeaseState[] = [];
  for (const lease of leases.all()) {
    all.push(lease);
    if (all.length % unitsPerStep === 0) yield;
  }
  // Ids are sorted as unsigned bytes, so negative ones come last.
  const firstPositive = all.findIndex(({ id }) => id >= 0n);
  const sorted = firstPositive <= 0 ? all : [...all.slice(firstPositive), ...all.slice(0, firstPositive)];
  return [
    {
      name: "lease",
      *items() {
        for (const { id, ttlSeconds } of sorted)
          yield pair(idBytes(id), leaseBytes({ id, ttl: BigInt(ttlSeconds) }));
      },
    },
    {
      name: "leasehold",
      *items() {
        for (const { id, name } of sorted) if (name !== undefined) yield pair(idBytes(id), Buffer.from(name));
      },
    },
  ];
}
