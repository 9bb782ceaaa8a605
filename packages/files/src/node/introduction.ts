import {
  isRecord,
  recordOrEmpty,
  textOrEmpty,
  type ErrorCode,
  LeaseholdError,
  errorCodes,
} from "leasehold/common";
import { type AuthCause, type AuthFault, type Proof, unprovenClaim } from "leasehold/runtime";

/**
 * The version of the introduction and of all frames that follow it: nodes of different versions do not talk.
 */
const version = 2;

/** The identity that a node claims. */
export interface Self {
  readonly cluster: string;
  readonly node: string;
  /** Whether a node of that name belongs to the cluster, as far as this one knows. */
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
 * Checks that the peer has proven that it may be this node of our cluster.
 *
 * @throws LeaseholdError `UNAUTHENTICATED`, `CLUSTER_MISMATCH`, `PERMISSION_DENIED`.
 */
export function checkPeer({ cluster }: Self, node: string, proof: Proof | AuthFault): void {
  const claim = { role: "member", cluster, memberId: node } as const;
  const fault = "cause" in proof ? proof : unprovenClaim(proof, claim);
  if (fault !== undefined) throw authError(fault);
}

/** The dialler's first frame. */
export function hello({ cluster, node }: Self, to: string): object {
  return { hello: { version, cluster, node, to } };
}

/** The acceptor's first frame. */
export function welcome({ cluster, node }: Self): object {
  return { welcome: { version, cluster, node } };
}

/** The acceptor's first frame if it refuses. */
export function refusal({ code, message }: LeaseholdError): object {
  return { refused: { code, message } };
}

/**
 * Returns the node that sent the hello. Keys and plain TCP prove no name and no cluster; checking them
 * nevertheless finds mistakes in lists of addresses.
 *
 * @throws LeaseholdError the reason to refuse it.
 */
export function admitted(self: Self, proof: Proof, head: unknown): string {
  const said = recordOrEmpty(recordOrEmpty(head)["hello"]);
  checkVersion(said);
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
  return node;
}

/**
 * Checks the answer to a hello.
 *
 * @throws LeaseholdError the other side's refusal, or the reason to refuse it.
 */
export function checkWelcome(self: Self, to: string, head: unknown): void {
  const { refused, welcome } = recordOrEmpty(head);
  if (isRecord(refused)) {
    const code = textOrEmpty(refused["code"]);
    const known = Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : "VERSION_MISMATCH";
    throw new LeaseholdError(known, `it refuses us: ${textOrEmpty(refused["message"])}`);
  }
  const said = recordOrEmpty(welcome);
  checkVersion(said);
  checkCluster(self, textOrEmpty(said["cluster"]));
  if (said["node"] !== to)
    throw new LeaseholdError("CONFIG_MISMATCH", `node ${JSON.stringify(said["node"])} answers there`);
}

function checkVersion(said: Readonly<Record<string, unknown>>): void {
  if (said["version"] !== version)
    throw new LeaseholdError("VERSION_MISMATCH", `it does not begin as nodes of version ${version} do`);
}

function checkCluster(self: Self, cluster: string): void {
  if (cluster !== self.cluster)
    throw new LeaseholdError(
      "CLUSTER_MISMATCH",
      `it is of the cluster ${JSON.stringify(cluster)}, and this is ${JSON.stringify(self.cluster)}`,
    );
}
