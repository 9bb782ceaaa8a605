import {
  isCount,
  isRecord,
  recordOrEmpty,
  textOrEmpty,
  type ErrorCode,
  LeaseholdError,
  errorCodes,
} from "leasehold/common";
import { type AuthCause, type AuthFault, type Proof, unprovenClaim } from "leasehold/runtime";

/** The versions supported for frames after the introduction, inclusive. */
export interface Versions {
  readonly oldest: number;
  readonly newest: number;
}

/**
 * A connection uses the newest version that both nodes support. A new version keeps the previous one, so that
 * nodes can be upgraded one at a time.
 */
const spoken: Versions = { oldest: 2, newest: 2 };

/** The identity that a node claims. */
export interface Self {
  readonly cluster: string;
  readonly node: string;
  /** Whether a node with that name belongs to the cluster, as far as this node knows. */
  knows(node: string): boolean;
}

const codes: Partial<Record<AuthCause, ErrorCode>> = {
  cluster: "CLUSTER_MISMATCH",
  role: "PERMISSION_DENIED",
  memberId: "PERMISSION_DENIED",
};

export function authError({ cause, text }: AuthFault): LeaseholdError {
  return new LeaseholdError(codes[cause] ?? "UNAUTHENTICATED", text);
}

/**
 * Checks that the peer has proved that it may act as this node of our cluster.
 * @throws LeaseholdError `UNAUTHENTICATED`, `CLUSTER_MISMATCH`, `PERMISSION_DENIED`.
 */
export function checkPeer({ cluster }: Self, node: string, proof: Proof | AuthFault): void {
  const claim = { role: "member", cluster, memberId: node } as const;
  const fault = "cause" in proof ? proof : unprovenClaim(proof, claim);
  if (fault !== undefined) throw authError(fault);
}

/** The dialler's first frame. Nodes that support only one version read only `version`, the oldest. */
export function hello({ cluster, node }: Self, to: string, { oldest, newest } = spoken): object {
  return { hello: { version: oldest, newest, cluster, node, to } };
}

/** The acceptor's first frame, with the connection's version. */
export function welcome({ cluster, node }: Self, version: number): object {
  return { welcome: { version, cluster, node } };
}

/** The acceptor's first frame when it refuses. */
export function refusal({ code, message }: LeaseholdError): object {
  return { refused: { code, message } };
}

/** The sender of a hello. */
export interface Admitted {
  readonly node: string;
  /** The version of the connection. */
  readonly version: number;
}

/**
 * Returns the sender of the hello. Keys and plain TCP prove neither name nor cluster; checking them still
 * finds mistakes in lists of addresses.
 * @throws LeaseholdError the reason to refuse it.
 */
export function admitted(self: Self, proof: Proof, head: unknown, ours = spoken): Admitted {
  const said = recordOrEmpty(recordOrEmpty(head)["hello"]);
  const version = newestOfBoth(said, ours);
  const [node, to] = [textOrEmpty(said["node"]), textOrEmpty(said["to"])];
  checkPeer(self, node, proof);
  checkCluster(self, textOrEmpty(said["cluster"]));
  if (!self.knows(node) || node === self.node)
    throw new LeaseholdError(
      "PERMISSION_DENIED",
      `${JSON.stringify(node)} is not one of the other nodes here`,
    );
  if (to !== self.node)
    throw new LeaseholdError(
      "CONFIG_MISMATCH",
      `node ${node} looks for node ${JSON.stringify(to)} here, and this is ${self.node}`,
    );
  return { node, version };
}

/**
 * Checks the answer to a hello and returns the connection's version.
 * @throws LeaseholdError the other side's refusal, or the reason to refuse it.
 */
export function checkWelcome(self: Self, to: string, head: unknown, ours = spoken): number {
  const { refused, welcome } = recordOrEmpty(head);
  if (isRecord(refused)) {
    const code = textOrEmpty(refused["code"]);
    const known = Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : "VERSION_MISMATCH";
    throw new LeaseholdError(known, `it refuses us: ${textOrEmpty(refused["message"])}`);
  }
  const said = recordOrEmpty(welcome);
  const version = newestOfBoth(said, ours);
  checkCluster(self, textOrEmpty(said["cluster"]));
  if (said["node"] !== to)
    throw new LeaseholdError("CONFIG_MISMATCH", `node ${JSON.stringify(said["node"])} answers there`);
  return version;
}

/** @throws LeaseholdError `VERSION_MISMATCH` */
function newestOfBoth(said: Readonly<Record<string, unknown>>, { oldest, newest }: Versions): number {
  const theirOldest = said["version"];
  const theirNewest = said["newest"] ?? theirOldest;
  if (isCount(theirOldest) && isCount(theirNewest)) {
    const version = Math.min(newest, theirNewest);
    if (version >= Math.max(oldest, theirOldest)) return version;
  }
  const [here, there] = [spanOf(oldest, newest), spanOf(theirOldest, theirNewest)];
  throw new LeaseholdError("VERSION_MISMATCH", `it speaks version ${there}, and this node ${here}`);
}

const spanOf = (oldest: unknown, newest: unknown): string =>
  oldest === newest ? JSON.stringify(oldest) : `${JSON.stringify(oldest)} to ${JSON.stringify(newest)}`;

function checkCluster(self: Self, cluster: string): void {
  if (cluster !== self.cluster)
    throw new LeaseholdError(
      "CLUSTER_MISMATCH",
      `it is of the cluster ${JSON.stringify(cluster)}, and this is ${JSON.stringify(self.cluster)}`,
    );
}
