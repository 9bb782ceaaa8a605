import { append } from "leasehold/inner/common/lists.js";
import type { Recovered } from "@leasehold/core/inner/raft/api.js";
import { founding } from "@leasehold/core/inner/raft/options.js";
import type { MemberId } from "@leasehold/core/inner/raft/types.js";
import { type Identify, forced, restored } from "@leasehold/core/inner/host/new-core.js";
import type { SelfDescription } from "@leasehold/core/inner/replica/roll.js";
import type { CoreMember } from "@leasehold/core/inner/state/members.js";
import { restoreState, snapshotPieces } from "@leasehold/core/inner/state/snapshot.js";
import { CoreState } from "@leasehold/core/inner/state/state.js";
import { finish } from "@leasehold/core/inner/state/steps.js";
import type { FirstContent, StoredSnapshot } from "./disk.js";
import { Reference } from "./reference.js";
import type { SimServer } from "./server.js";
import type { CoreReport } from "./invariants.js";

/** A server of a new core. */
export interface NewServer {
  readonly id: MemberId;
  /** Its address. */
  readonly address: string;
  readonly cluster: bigint;
  readonly founding: readonly CoreMember[];
  readonly disk: FirstContent;
}

/** A core that is new to the world. */
export interface NewCore {
  readonly reference: Reference;
  /** The last revision that both cores share: later ones are lost. */
  readonly keptRevision: number;
  readonly servers: readonly NewServer[];
}

/** The whole state of a server at one moment. */
export interface TakenBackup {
  /** The applied index of that server. */
  readonly index: number;
  readonly pieces: readonly Uint8Array[];
}

const firstToken = "sim";
const firstCluster = 77n;
const saltMax = 1_000_000n;

interface SimIdentity {
  readonly id: MemberId;
  readonly cluster: bigint;
  readonly members: readonly { readonly id: MemberId; readonly address: string }[];
}

/** Short, readable ids. The ids of the first core are derived from its addresses. */
const identify: Identify<string, SimIdentity> = (addresses, name, token) => {
  const salt = token === firstToken ? 0n : 1n + (hashOf(new TextEncoder().encode(token)) % saltMax);
  const members = addresses.map((address) => ({ address, id: 100n * salt + BigInt(address.slice(1)) }));
  const { id } = members.find(({ address }) => address === name)!;
  return { id, members, cluster: firstCluster + salt };
};

const offset = 14_695_981_039_346_656_037n;
const prime = 1_099_511_628_211n;

/** FNV-1a. */
function hashOf(bytes: Uint8Array, before = offset): bigint {
  let hash = before;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * prime);
  return hash;
}

const addressesOf = (servers: number) => Array.from({ length: servers }, (_, index) => `s${index + 1}`);

/** The address of a member. The addresses of the first members are fixed. */
export function addressOf(member: CoreMember | undefined, id: MemberId): string {
  return /[^/]+(?=:)/.exec(member?.peerUrls[0] ?? "")?.[0] ?? `s${id}`;
}

export function descriptionOf(id: MemberId): SelfDescription {
  return { name: `s${id}`, clientUrls: [`http://s${id}:2`], disk: id };
}

function foundingMember({ address, id }: SimIdentity["members"][number]): CoreMember {
  return {
    id,
    name: descriptionOf(id).name,
    peerUrls: [`http://${address}:1`],
    clientUrls: [],
    learner: false,
    disk: 0n,
    joining: false,
  };
}

/** Servers that know only each other's addresses. */
export function firstServers(count: number): NewServer[] {
  const addresses = addressesOf(count);
  return addresses.map((address) => {
    const { cluster, id, members } = identify(addresses, address, firstToken);
    const recovered = founding(members.map((member) => member.id));
    const disk = { recovered, snapshot: undefined };
    return { address, cluster, disk, founding: members.map(foundingMember), id };
  });
}

/** Servers that were each restored from the same backup, as `core/server/backup` does it. */
export function restoredCore(
  count: number,
  { index, pieces }: TakenBackup,
  former: Reference,
  report: CoreReport,
  pieceBytes: number | undefined,
): NewCore {
  const hash = pieces.reduce((sum, piece) => hashOf(piece, sum), offset).toString(16);
  const addresses = addressesOf(count);
  const servers = addresses.map((address): NewServer => {
    const state = restoreState(pieces);
    const plan = { initialCluster: addresses, name: address, token: firstToken };
    const { identity, recovered } = restored({ hash, state }, plan, identify);
    const { cluster, id, members } = identity;
    const disk = { recovered, snapshot: snapshotOf(state, recovered, pieceBytes) };
    return { address, cluster, disk, founding: members.map(foundingMember), id };
  });
  const begin = () => asNew(former.stateAt(index));
  const keptRevision = begin().revisions.current;
  const changes = former.changes.filter(({ modified }) => modified <= keptRevision);
  return { keptRevision, servers, reference: new Reference(report, { index: 1, term: 1, begin, changes }) };
}

/** The server continues alone with its disk, as after `--force-new-cluster`. */
export function forcedCore(
  { disk: { recovered, snapshot }, id, plan }: SimServer,
  cluster: bigint,
  former: Reference,
  report: CoreReport,
): NewCore {
  const { address } = plan;
  const own = { ...foundingMember({ address, id }), disk: descriptionOf(id).disk };
  const state = snapshot === undefined ? new CoreState() : restoreState(snapshot.pieces);
  const content = finish(forced(recovered, state, own, cluster));
  const agreed = former.agreedIndex(recovered);
  const tail = recovered.entries.filter(({ index }) => index > agreed);
  const begin = () => {
    const expected = former.stateAt(agreed);
    for (const entry of tail) former.replay(expected, entry);
    const self = expected.members.get(id) ?? own;
    asNew(expected).cluster = cluster;
    expected.members.set([{ ...self, disk: own.disk, joining: false, learner: false }]);
    return expected;
  };
  const keptRevision = former.stateAt(agreed).revisions.current;
  const changes = former.changes.filter(({ modified }) => modified <= keptRevision);
  const after = former.stateAt(agreed);
  for (const entry of tail) append(changes, former.replay(after, entry));
  const { index, term } = content.snapshot;
  const reference = new Reference(report, { index, term, begin, changes });
  const found = { recovered: content, snapshot: snapshotOf(state, content, plan.limits.snapshotPieceBytes) };
  return { keptRevision, reference, servers: [{ address, cluster, disk: found, founding: [own], id }] };
}

function snapshotOf(
  state: CoreState,
  { snapshot: meta }: Recovered,
  pieceBytes: number | undefined,
): StoredSnapshot {
  return { meta, pieces: [...snapshotPieces(state, pieceBytes)] };
}

/**
 * The state that a successor must have: everything but the membership and the remaining times of leases. It
 * is computed here rather than by the product.
 */
function asNew(state: CoreState): CoreState {
  state.cluster = 0n;
  state.members.set([]);
  state.members.removed.clear();
  state.spaceAlarms.clear();
  state.corruptAlarms.clear();
  for (const lease of state.leases.all()) [lease.leftMs, lease.grantedIndex] = [undefined, 0];
  return state;
}
