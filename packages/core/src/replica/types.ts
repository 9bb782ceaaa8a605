import type {
  AuthRoleGetRequest,
  AuthRoleGetResponse,
  AuthRoleListRequest,
  AuthRoleListResponse,
  AuthStatusRequest,
  AuthStatusResponse,
  AuthUserGetRequest,
  AuthUserGetResponse,
  AuthUserListRequest,
  AuthUserListResponse,
} from "leasehold/etcd/gen/etcd/auth_pb.js";
import type {
  AlarmRequest,
  MemberAddRequest,
  MemberListRequest,
  MemberListResponse,
  MemberPromoteRequest,
  MemberRemoveRequest,
  MemberUpdateRequest,
} from "leasehold/etcd/gen/etcd/cluster_pb.js";
import type {
  CompactionRequest,
  DeleteRangeRequest,
  LeaseGrantRequest,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  LeaseLeasesRequest,
  LeaseLeasesResponse,
  LeaseRevokeRequest,
  LeaseTimeToLiveRequest,
  LeaseTimeToLiveResponse,
  PutRequest,
  RangeRequest,
  RangeResponse,
  ResponseHeader,
  TxnRequest,
  WatchRequest,
  WatchResponse,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { InstallSnapshot, MemberId, Message, Persist, Ready, SnapshotMeta } from "../raft/types.js";
import type { CoreError } from "../state/errors.js";
import type { CommandAnswer, CoreState } from "../state/state.js";
import type { CommandBody } from "./context.js";
import type { Comparison, CopyMessage } from "../copies/copies.js";
import type { FrozenState } from "./frozen-state.js";
import type { LeaderMessage } from "./proposals/leader-messages.js";
import type { Roll } from "./roll.js";

/**
 * A client's request. Most requests are etcd's; `registerLease` is that of *Patterns of Distributed Systems*,
 * "Lease", and `findLease` finds a registered lease. Both are answered by a `LeaseGrantResponse`.
 */
export type ClientRequest =
  | { readonly kind: "range"; readonly request: RangeRequest }
  | { readonly kind: "put"; readonly request: PutRequest }
  | { readonly kind: "deleteRange"; readonly request: DeleteRangeRequest }
  | { readonly kind: "txn"; readonly request: TxnRequest }
  | { readonly kind: "compact"; readonly request: CompactionRequest }
  | { readonly kind: "leaseGrant"; readonly request: LeaseGrantRequest }
  | { readonly kind: "leaseRevoke"; readonly request: LeaseRevokeRequest }
  | { readonly kind: "leaseKeepAlive"; readonly request: LeaseKeepAliveRequest }
  | { readonly kind: "leaseTimeToLive"; readonly request: LeaseTimeToLiveRequest }
  | { readonly kind: "leaseLeases"; readonly request: LeaseLeasesRequest }
  | { readonly kind: "registerLease"; readonly request: RegisterLeaseRequest }
  | { readonly kind: "findLease"; readonly request: { readonly name: string } }
  | { readonly kind: "alarm"; readonly request: AlarmRequest }
  /** This server's whole content at one moment. */
  | { readonly kind: "freeze"; readonly request: object }
  | { readonly kind: "memberList"; readonly request: MemberListRequest }
  | MembershipRequest
  | AuthRead
  | { readonly kind: "auth"; readonly request: AuthCommand };

/** A change of users, roles and permissions, or an authenticated user, as it is in the log. */
export type AuthCommand = Extract<
  CommandBody,
  {
    case:
      | "authEnable"
      | "authDisable"
      | "authenticate"
      | `user${"Add" | "Delete" | "ChangePassword" | "GrantRole" | "RevokeRole"}`
      | `role${"Add" | "Delete" | "GrantPermission" | "RevokePermission"}`;
  }
>;

/** A read of users, roles and permissions. */
export type AuthRead =
  | { readonly kind: "authStatus"; readonly request: AuthStatusRequest }
  | { readonly kind: "userGet"; readonly request: AuthUserGetRequest }
  | { readonly kind: "userList"; readonly request: AuthUserListRequest }
  | { readonly kind: "roleGet"; readonly request: AuthRoleGetRequest }
  | { readonly kind: "roleList"; readonly request: AuthRoleListRequest }
  /** Whether the caller is root. */
  | { readonly kind: "root"; readonly request: object }
  /** Whether the caller is authenticated, or authentication is disabled. */
  | { readonly kind: "user"; readonly request: object }
  /** For the server itself, to check passwords. */
  | { readonly kind: "secret"; readonly request: { readonly name: string } };

/** A client's credentials. */
export type Credentials =
  /** The answer of `Authenticate`. */
  | { readonly kind: "token"; readonly token: string }
  /** Verified by the host from a certificate, or from a signed token, which carries its revision. */
  | { readonly kind: "user"; readonly user: string; readonly revision?: bigint | undefined };

/** A positive answer to `root` and `user`. */
export interface Permit {
  readonly $typeName: "leasehold.Permit";
  header?: ResponseHeader;
}

export interface UserSecret {
  readonly $typeName: "leasehold.UserSecret";
  header?: ResponseHeader;
  /** For an unknown user, the secret of the next user by name, so that the check takes as long. */
  readonly secret: Uint8Array;
  /** Whether the user exists. */
  readonly isKnown: boolean;
  /** The revision of users, roles and permissions. */
  readonly revision: bigint;
}

/** A change of the membership or of a member's description; the leader judges it. */
export type MembershipRequest =
  | { readonly kind: "memberAdd"; readonly request: MemberAddRequest }
  | { readonly kind: "memberRemove"; readonly request: MemberRemoveRequest }
  | { readonly kind: "memberPromote"; readonly request: MemberPromoteRequest }
  | { readonly kind: "memberUpdate"; readonly request: MemberUpdateRequest };

/**
 * Registers a named lease, with an id chosen by the client or by the core. Answered by a
 * `LeaseGrantResponse`.
 */
export interface RegisterLeaseRequest {
  /** Not empty. */
  readonly name: string;
  readonly ttlSeconds: bigint;
  /** 0 or absent: the core chooses. */
  readonly id?: bigint;
}

/** A response with its header. */
export type ClientResponse =
  | CommandAnswer
  | FrozenState
  | MemberListResponse
  | RangeResponse
  | LeaseKeepAliveResponse
  | LeaseTimeToLiveResponse
  | LeaseLeasesResponse
  | AuthStatusResponse
  | AuthUserGetResponse
  | AuthUserListResponse
  | AuthRoleGetResponse
  | AuthRoleListResponse
  | Permit
  | UserSecret;

/**
 * Between servers: Raft's messages, requests to the leader on behalf of clients, and comparisons of
 * content.
 */
export type PeerMessage = Message | LeaderMessage | CopyMessage;

/** An event for a server. */
export type Input =
  /** Time passes: every `tickMs`. */
  | { readonly kind: "tick" }
  | {
      readonly kind: "request";
      /** Chosen by the host; unique among pending requests. */
      readonly id: number;
      readonly request: ClientRequest;
      /**
       * On the clock of `nowMs`. By then the request is answered, or the read has begun on a state that is
       * new enough.
       */
      readonly deadlineMs: number;
      /** The client key: each client has a share of the room for requests. */
      readonly client: string;
      readonly credentials?: Credentials | undefined;
    }
  /** The client is gone, and gets no answer. A proposal may still be applied. */
  | { readonly kind: "cancel"; readonly id: number }
  /** A message from another server, other than `InstallSnapshot`. */
  | { readonly kind: "message"; readonly message: PeerMessage }
  /**
   * A snapshot has arrived completely, and `state` was restored from it. If it is accepted, `Effects.persist`
   * has its `meta`.
   */
  | { readonly kind: "snapshot-received"; readonly message: InstallSnapshot; readonly state: CoreState }
  /** Outcome of an `InstallSnapshot` transfer. Every transfer must be reported. */
  | { readonly kind: "snapshot-sent"; readonly member: MemberId; readonly arrived: boolean }
  /** The connection to this member is lost, possibly with messages in flight. */
  | { readonly kind: "unreachable"; readonly member: MemberId }
  /**
   * There is a new connection to this member, and no earlier message is in flight. `takesRepeats`: the member
   * recognizes repeated proposals.
   */
  | { readonly kind: "connected"; readonly member: MemberId; readonly takesRepeats: boolean }
  /**
   * The connection did not accept this message: nothing of it was sent. `drained` or `connected` follows.
   */
  | { readonly kind: "not-sent"; readonly message: PeerMessage }
  /** The connection to this member accepts messages again. */
  | { readonly kind: "drained"; readonly member: MemberId }
  /** A part of a message from this member has arrived. */
  | { readonly kind: "arriving"; readonly member: MemberId }
  /** The write `sequence` of `Effects.persist` and every earlier one are on disk. */
  | { readonly kind: "persisted"; readonly sequence: number }
  /** Requests a snapshot now, if anything has been applied since the last one. */
  | { readonly kind: "take-snapshot" }
  /** Compares the content of all servers once: `Effects.compared` has the result. */
  | { readonly kind: "compare-copies" }
  /** `Effects.snapshot` is on disk. */
  | { readonly kind: "snapshot-written"; readonly meta: SnapshotMeta }
  /** The snapshot could not be written. The next attempt follows after as many entries again. */
  | { readonly kind: "snapshot-failed" }
  /**
   * A client's message on a watch stream. A stream begins with its first message, under a number that the
   * host chooses.
   */
  | {
      readonly kind: "watch";
      readonly stream: number;
      /** The client key: each client has a share of the room for watches and their responses. */
      readonly client: string;
      readonly request: WatchRequest;
      readonly credentials?: Credentials | undefined;
    }
  /** This many more of the stream's responses were sent to the client, and no longer use memory here. */
  | { readonly kind: "watch-sent"; readonly stream: number; readonly responses: number }
  /** The stream has ended. Its number is never reused. */
  | { readonly kind: "watch-closed"; readonly stream: number }
  /**
   * Another server has reported the newest version it supports. 0: that server has gone, and may come back
   * with another version.
   */
  | { readonly kind: "peer-version"; readonly member: MemberId; readonly version: number }
  /** Transfers leadership, if this server leads; `status().leader` shows the outcome. */
  | { readonly kind: "transfer"; readonly to: MemberId };

/**
 * Work for the host. As in `Ready`, `early`, `answers`, `notices` and `watches` wait for no write, and
 * `messages` wait until `persist` of this and of all earlier effects is on disk. Answers leave before the
 * commit notices to other servers. Watches, which may be many, leave after those.
 */
export interface Effects {
  readonly persist: Persist | undefined;
  readonly early: readonly PeerMessage[];
  readonly notices: readonly PeerMessage[];
  readonly messages: readonly PeerMessage[];
  readonly answers: readonly Answer[];
  /** In order for each stream. */
  readonly watches: readonly WatchAnswer[];
  /**
   * To be written to disk; then report `snapshot-written` or `snapshot-failed`. There is only one at a time.
   */
  readonly snapshot: SnapshotToWrite | undefined;
  /** Present if it has changed. */
  readonly leadership: Ready["leadership"];
  /** Present if it has changed. */
  readonly roll: Roll | undefined;
  /** Why messages from other servers were refused; for operators. */
  readonly objections: readonly string[];
  /** Present at the end of a comparison of the servers' keys. */
  readonly compared: Comparison | undefined;
}

export interface Answer {
  readonly id: number;
  readonly result: ClientResponse | CoreError;
}

export interface WatchAnswer {
  readonly stream: number;
  /** An error ends the stream. */
  readonly response: WatchResponse | CoreError;
}

export interface SnapshotToWrite {
  readonly meta: SnapshotMeta;
  /**
   * The content as of this moment, produced piece by piece at the host's pace. Can be iterated once;
   * `restoreState` reads it.
   */
  readonly pieces: Iterable<Uint8Array>;
}
