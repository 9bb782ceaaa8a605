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
 * What a client asks. The requests are etcd's; `registerLease` is that of *Patterns of Distributed Systems*,
 * "Lease", and `findLease` finds what was registered: its answer is a `LeaseGrantResponse`, too.
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
  /** All that this server has, at one moment. */
  | { readonly kind: "freeze"; readonly request: object }
  | { readonly kind: "memberList"; readonly request: MemberListRequest }
  | MembershipRequest
  | AuthRead
  | { readonly kind: "auth"; readonly request: AuthCommand };

/** A change of users, roles and rights, or a user whose password was right: as it stands in the log. */
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

/** What is asked about users, roles and rights. */
export type AuthRead =
  | { readonly kind: "authStatus"; readonly request: AuthStatusRequest }
  | { readonly kind: "userGet"; readonly request: AuthUserGetRequest }
  | { readonly kind: "userList"; readonly request: AuthUserListRequest }
  | { readonly kind: "roleGet"; readonly request: AuthRoleGetRequest }
  | { readonly kind: "roleList"; readonly request: AuthRoleListRequest }
  /** Whether the caller may do everything. */
  | { readonly kind: "root"; readonly request: object }
  /** Whether it is known who the caller is, or nobody says so. */
  | { readonly kind: "user"; readonly request: object }
  /** For the server itself, that looks whether a password is right. */
  | { readonly kind: "secret"; readonly request: { readonly name: string } };

/** How a client shows who it is. */
export type Credentials =
  /** What `Authenticate` answered. */
  | { readonly kind: "token"; readonly token: string }
  /** Found out by the host: from a certificate, or from a signed token, which says how new it is. */
  | { readonly kind: "user"; readonly user: string; readonly revision?: bigint | undefined };

/** Yes, to `root` and `user`. */
export interface Permit {
  readonly $typeName: "leasehold.Permit";
  header?: ResponseHeader;
}

export interface UserSecret {
  readonly $typeName: "leasehold.UserSecret";
  header?: ResponseHeader;
  /** Of the next user by name if there is no such user: to look at it takes as long as at the user's own. */
  readonly secret: Uint8Array;
  /** There is such a user. */
  readonly isKnown: boolean;
  /** Of users, roles and rights. */
  readonly revision: bigint;
}

/** What changes who the members are, or what is known of one: the leader judges it. */
export type MembershipRequest =
  | { readonly kind: "memberAdd"; readonly request: MemberAddRequest }
  | { readonly kind: "memberRemove"; readonly request: MemberRemoveRequest }
  | { readonly kind: "memberPromote"; readonly request: MemberPromoteRequest }
  | { readonly kind: "memberUpdate"; readonly request: MemberUpdateRequest };

/** A lease by name, with an id of the client's or of the core's choice: its answer is a `LeaseGrantResponse`. */
export interface RegisterLeaseRequest {
  /** Not empty. */
  readonly name: string;
  readonly ttlSeconds: bigint;
  /** 0 or absent: the core chooses. */
  readonly id?: bigint;
}

/** With its header. */
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
 * Between servers: the replicated log's own messages, what only the leader can do for a follower's clients, and
 * what each of them has.
 */
export type PeerMessage = Message | LeaderMessage | CopyMessage;

/** What can happen to a server. */
export type Input =
  /** Time passes: to be said every `tickMs`. */
  | { readonly kind: "tick" }
  | {
      readonly kind: "request";
      /** Chosen by the host; in use by no other request that is not answered yet. */
      readonly id: number;
      readonly request: ClientRequest;
      /** On the clock of `nowMs`. By then there is an answer, or what is read is new enough and is being read. */
      readonly deadlineMs: number;
      /** Whose it is: clients share the room that there is for requests. */
      readonly client: string;
      readonly credentials?: Credentials | undefined;
    }
  /** The client is gone: nothing is answered any more. What was proposed may still happen. */
  | { readonly kind: "cancel"; readonly id: number }
  /** A message from another server, but for `InstallSnapshot`. */
  | { readonly kind: "message"; readonly message: PeerMessage }
  /**
   * A snapshot has arrived as a whole, and `state` was restored from it. If it is taken, `Effects.persist`
   * has its `meta`.
   */
  | { readonly kind: "snapshot-received"; readonly message: InstallSnapshot; readonly state: CoreState }
  /** How the transfer of an `InstallSnapshot` ended. Every one must be reported. */
  | { readonly kind: "snapshot-sent"; readonly member: MemberId; readonly arrived: boolean }
  /** A connection to this member is lost, and what was on its way may be. */
  | { readonly kind: "unreachable"; readonly member: MemberId }
  /**
   * There is a connection to this member, and none of what was sent before is on its way any more.
   * `takesRepeats`: it recognizes proposals that it has had.
   */
  | { readonly kind: "connected"; readonly member: MemberId; readonly takesRepeats: boolean }
  /** The connection did not take this message: nothing of it has left. `drained` or `connected` follows. */
  | { readonly kind: "not-sent"; readonly message: PeerMessage }
  /** The connection to this member takes messages again. */
  | { readonly kind: "drained"; readonly member: MemberId }
  /** A part of a message from this member has arrived. */
  | { readonly kind: "arriving"; readonly member: MemberId }
  /** The write `sequence` of `Effects.persist`, and each before it, is on disk. */
  | { readonly kind: "persisted"; readonly sequence: number }
  /** A snapshot is to be taken now, if anything has been applied since the last one. */
  | { readonly kind: "take-snapshot" }
  /** Compares what all servers have, once: `Effects.compared` tells what came out. */
  | { readonly kind: "compare-copies" }
  /** `Effects.snapshot` is on disk. */
  | { readonly kind: "snapshot-written"; readonly meta: SnapshotMeta }
  /** It could not be written. Another is tried after as many entries again. */
  | { readonly kind: "snapshot-failed" }
  /**
   * A client's message on a watch stream. A stream begins with its first message; the host chooses its
   * number.
   */
  | {
      readonly kind: "watch";
      readonly stream: number;
      /** Whose it is: clients share the room that there is for watches, and for what they are told. */
      readonly client: string;
      readonly request: WatchRequest;
      readonly credentials?: Credentials | undefined;
    }
  /** So many more of the stream's responses have left for the client, and use no memory here any more. */
  | { readonly kind: "watch-sent"; readonly stream: number; readonly responses: number }
  /** The stream is over. Its number is never used again. */
  | { readonly kind: "watch-closed"; readonly stream: number }
  /** Another server has said which version it speaks at most; 0: it has gone, and may come back with another. */
  | { readonly kind: "peer-version"; readonly member: MemberId; readonly version: number }
  /** Hands leadership over if this server has it; `status().leader` tells when that has happened. */
  | { readonly kind: "transfer"; readonly to: MemberId };

/**
 * What is to be done. As with `Ready`: `early`, `answers`, `notices`, `watches` wait for no write; `messages`
 * wait until `persist` of this and of all effects before is on disk. Clients that wait for an answer get it
 * before other servers hear what is committed, and watches, which may be many, hear it after those.
 */
export interface Effects {
  readonly persist: Persist | undefined;
  readonly early: readonly PeerMessage[];
  readonly notices: readonly PeerMessage[];
  readonly messages: readonly PeerMessage[];
  readonly answers: readonly Answer[];
  /** In this order on each stream. */
  readonly watches: readonly WatchAnswer[];
  /** To be written to disk; then say `snapshot-written` or `snapshot-failed`. There is one at a time. */
  readonly snapshot: SnapshotToWrite | undefined;
  /** Set when it has changed. */
  readonly leadership: Ready["leadership"];
  /** Set when it has changed. */
  readonly roll: Roll | undefined;
  /** Why messages of other servers were refused: for people. */
  readonly objections: readonly string[];
  /** Set when a comparison of the servers' keys has ended. */
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
   * Its content, as it was when this was handed out, made piece by piece: the host may take its time. To be
   * gone through once; `restoreState` reads it.
   */
  readonly pieces: Iterable<Uint8Array>;
}
