/** Errors of the core, with etcd's code and text where etcd has one, as clients match them literally. */
const failures = {
  keyNotProvided: [3, "etcdserver: key is not provided"],
  duplicateKey: [3, "etcdserver: duplicate key given in txn request"],
  tooManyOperations: [3, "etcdserver: too many operations in txn request"],
  requestTooLarge: [3, "etcdserver: request is too large"],
  valueProvided: [3, "etcdserver: value is provided"],
  leaseProvided: [3, "etcdserver: lease is provided"],
  userNameEmpty: [3, "etcdserver: user name is empty"],
  roleNameEmpty: [3, "etcdserver: role name is empty"],
  permissionMissing: [3, "etcdserver: permission not given"],
  authFailed: [3, "etcdserver: authentication failed, invalid user ID or password"],
  authManagement: [3, "etcdserver: invalid auth management"],
  authRevisionOld: [3, "etcdserver: revision of auth store is old"],
  passwordNotUsed: [2, "auth: authentication failed, password was given for no password user"],
  tokensNotSigned: [2, "auth: token signing attempted with verify-only key"],
  permissionDenied: [7, "etcdserver: permission denied"],
  rootUserMissing: [9, "etcdserver: root user does not exist"],
  rootRoleMissing: [9, "etcdserver: root user does not have root role"],
  userExists: [9, "etcdserver: user name already exists"],
  userNotFound: [9, "etcdserver: user name not found"],
  roleExists: [9, "etcdserver: role name already exists"],
  roleNotFound: [9, "etcdserver: role name not found"],
  roleNotGranted: [9, "etcdserver: role is not granted to the user"],
  permissionNotGranted: [9, "etcdserver: permission is not granted to the role"],
  authNotEnabled: [9, "etcdserver: authentication is not enabled"],
  invalidAuthToken: [16, "etcdserver: invalid auth token"],
  leaseNameMissing: [3, "leasehold: a lease's name is empty"],
  invalidSortOption: [3, "etcdserver: invalid sort option"],
  keyNotFound: [3, "etcdserver: key not found"],
  leaseNotFound: [5, "etcdserver: requested lease not found"],
  leaseNameTaken: [6, "leasehold: a lease of this name exists already"],
  leaseExists: [9, "etcdserver: lease already exists"],
  compacted: [11, "etcdserver: mvcc: required revision has been compacted"],
  futureRevision: [11, "etcdserver: mvcc: required revision is a future revision"],
  leaseTtlTooLarge: [11, "etcdserver: too large lease TTL"],
  tooManyRequests: [8, "etcdserver: too many requests"],
  answerTooLarge: [8, "leasehold: the answer is too large: ask for a part of it (limit, keys_only)"],
  answerTooLargeDone: [8, "leasehold: the request was carried out, and its answer is too large"],
  watchTooLarge: [
    8,
    "leasehold: one revision has too much for this watch: ask for fragments, or for fewer keys",
  ],
  tooManyRights: [
    8,
    "leasehold: there are too many users, roles and permissions, or their names are too long",
  ],
  noSpace: [8, "etcdserver: mvcc: database space exceeded"],
  corrupt: [15, "etcdserver: corrupt cluster"],
  memberNotFound: [5, "etcdserver: member not found"],
  peerUrlExists: [9, "etcdserver: Peer URLs already exists"],
  peerUrlsInvalid: [3, "etcdserver: given member URLs are invalid"],
  // As in etcd, without a code of its own.
  notEnoughStarted: [2, "etcdserver: re-configuration failed due to not enough started members"],
  unhealthy: [14, "etcdserver: unhealthy cluster"],
  tooManyLearners: [9, "etcdserver: too many learner members in cluster"],
  notLearner: [9, "etcdserver: can only promote a learner member"],
  learnerNotReady: [9, "etcdserver: can only promote a learner member which is in sync with leader"],
  tooManyMembers: [9, "leasehold: a core has at most nine servers"],
  notForLearner: [14, "etcdserver: rpc not supported for learner"],
  notLeader: [9, "etcdserver: not leader"],
  badTransferee: [9, "etcdserver: bad leader transferee"],
  transferTimeout: [14, "etcdserver: request timed out, leader transfer took too long"],
  badDowngrade: [3, "etcdserver: invalid downgrade target version"],
  badDowngradeVersion: [3, "etcdserver: wrong downgrade target version format"],
  noDowngrade: [9, "etcdserver: no inflight downgrade job"],
  noLeader: [14, "etcdserver: no leader"],
  leaderChanged: [14, "etcdserver: leader changed"],
  stopped: [14, "etcdserver: server stopped"],
  internal: [13, "leasehold: the server has made a mistake with this request; its log says which"],
  timeout: [14, "etcdserver: request timed out"],
} as const satisfies Record<string, readonly [code: number, text: string]>;

export type CoreFailure = keyof typeof failures;

/** An error as an answer. `code` is gRPC's status. */
export class CoreError extends Error {
  readonly failure: CoreFailure;
  readonly code: number;

  /** @param cause for `internal`: the original error */
  constructor(failure: CoreFailure, cause?: unknown) {
    super(failures[failure][1], { cause });
    this.name = "CoreError";
    this.failure = failure;
    this.code = failures[failure][0];
  }

  /** The text as printed by etcd's Go clients, and in the cancel reasons of watches. */
  get grpcText(): string {
    return `rpc error: code = ${codeNames.get(this.code)} desc = ${this.message}`;
  }
}

/** The usual refusal when there is no room. */
export function tooManyRequests(): CoreError {
  return new CoreError("tooManyRequests");
}

/** Names of the codes that appear in cancel reasons of watches. */
const codeNames = new Map([
  [3, "InvalidArgument"],
  [7, "PermissionDenied"],
  [16, "Unauthenticated"],
]);

/** Returns the error for a client when `error` was thrown while validating its request, before any effect. */
export function refusalFor(error: unknown): CoreError {
  return error instanceof CoreError ? error : new CoreError("internal", error);
}
