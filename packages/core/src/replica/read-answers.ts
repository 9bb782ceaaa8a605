import { create } from "@bufbuild/protobuf";
import {
  AuthRoleGetResponseSchema,
  AuthRoleListResponseSchema,
  AuthStatusResponseSchema,
  AuthUserGetResponseSchema,
  AuthUserListResponseSchema,
} from "leasehold/etcd/gen/etcd/auth_pb.js";
import {
  AlarmRequest_AlarmAction as Action,
  type AlarmRequest,
  AlarmType,
} from "leasehold/etcd/gen/etcd/cluster_pb.js";
import {
  LeaseGrantResponseSchema,
  LeaseKeepAliveResponseSchema,
  LeaseLeasesResponseSchema,
  type LeaseStatus,
  LeaseStatusSchema,
  LeaseTimeToLiveResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { AuthState } from "../state/auth-state.js";
import type { RightsCheck } from "../state/check-rights.js";
import { CoreError } from "../state/errors.js";
import { bytesOf, singleKeyRange } from "../state/keys.js";
import { keysOf } from "../state/leases.js";
import { alarmResponse, allAlarms } from "../state/alarms.js";
import { sortInSteps, type Steps, unitsPerStep } from "../state/steps.js";
import type { Context } from "./context.js";
import { freeze } from "./frozen-state.js";
import type { LeaderAnswer } from "./proposals/leader-messages.js";
import type { MembershipKeeping } from "./membership.js";
import type { AuthRead, ClientRequest, ClientResponse } from "./types.js";

type ReadRequest = Extract<ClientRequest, { kind: "range" | "txn" }>;

/**
 * Builds the answer to a read-only request, in steps. The state must be new enough.
 *
 * @param answer the leader's, unless the request bypasses it
 * @param check authorizes the read; called when the answer begins to be built, since the answer shows the
 *   state of that moment
 */
export function* answerRead(
  context: Context,
  members: MembershipKeeping,
  asked: ClientRequest,
  answer: LeaderAnswer | undefined,
  check: () => RightsCheck | undefined,
): Steps<ClientResponse> {
  if (asked.kind === "leaseTimeToLive")
    return yield* timeToLive(context, asked.request, answer?.ttlSeconds ?? -1, check);
  if (asked.kind === "freeze") while (context.state.isApplying) yield;
  const checked = check();
  if (asked.kind === "freeze") return freeze(context);
  if (asked.kind === "range" || asked.kind === "txn") return yield* read(context, asked);
  if (isAuthRead(asked)) return answerAuth(context, asked, checked);
  if (asked.kind === "memberList") return Object.assign(members.list(), { header: context.header(0) });
  if (asked.kind === "alarm") return alarms(context, asked.request);
  if (asked.kind === "findLease") return named(context, asked.request.name);
  return yield* leases(context);
}

function* read(context: Context, { kind, request }: ReadRequest): Steps<ClientResponse> {
  const { state } = context;
  const revision = state.revisions.current;
  const { answerBytesMax } = context.limits;
  const response =
    kind === "range"
      ? yield* state.read(request, answerBytesMax)
      : yield* state.readTxn(request, answerBytesMax);
  response.header = context.header(revision);
  return response;
}

/** The header has the revision from before the refresh. */
export function refreshAnswer(
  context: Context,
  request: ClientRequest,
  { revision, ttlSeconds }: LeaderAnswer,
): ClientResponse | CoreError {
  if (request.kind !== "leaseKeepAlive") return new CoreError("timeout");
  const header = context.header(revision);
  return create(LeaseKeepAliveResponseSchema, { header, ID: request.request.ID, TTL: BigInt(ttlSeconds) });
}

function* timeToLive(
  context: Context,
  { ID, keys }: { ID: bigint; keys: boolean },
  ttlSeconds: number,
  check: () => RightsCheck | undefined,
): Steps<ClientResponse> {
  // All of the lease's keys are read at one revision.
  while (context.state.isApplying) yield;
  const checked = check();
  const header = context.header();
  const lease = context.state.leases.get(ID);
  if (lease === undefined || ttlSeconds < 0)
    return create(LeaseTimeToLiveResponseSchema, { header, ID, TTL: -1n });
  const names: Uint8Array[] = [];
  if (keys)
    for (const key of yield* sortInSteps([...keysOf(lease)], (a, b) => (a < b ? -1 : 1))) {
      // A lease may hold keys of other users: check each.
      checked?.keys("read", singleKeyRange(key));
      if (names.push(bytesOf(key)) % unitsPerStep === 0) yield;
    }
  return create(LeaseTimeToLiveResponseSchema, {
    header,
    ID,
    TTL: BigInt(ttlSeconds),
    grantedTTL: BigInt(lease.ttlSeconds),
    keys: names,
  });
}

function alarms(context: Context, { action, alarm }: AlarmRequest): ClientResponse {
  const all = action === Action.GET ? allAlarms(context.state) : [];
  const response = alarmResponse(alarm === AlarmType.NONE ? all : all.filter((each) => each.alarm === alarm));
  response.header = context.header();
  return response;
}

/**
 * Finds a registered lease, with its granted time.
 * @throws CoreError
 */
function named(context: Context, name: string): ClientResponse {
  const lease = context.state.leases.named(name);
  if (lease === undefined) throw new CoreError("leaseNotFound");
  const { id: ID, ttlSeconds } = lease;
  return create(LeaseGrantResponseSchema, { header: context.header(), ID, TTL: BigInt(ttlSeconds) });
}

/** Lists every lease that exists during the whole listing. */
function* leases(context: Context): Steps<ClientResponse> {
  const header = context.header();
  const leases: LeaseStatus[] = [];
  for (const { id } of context.state.leases.all())
    if (leases.push(create(LeaseStatusSchema, { ID: id })) % unitsPerStep === 0) yield;
  return create(LeaseLeasesResponseSchema, { header, leases });
}

/**
 * Answers reads of users, roles and permissions.
 *
 * @param check undefined while authentication is disabled
 * @throws CoreError
 */
function answerAuth(context: Context, asked: AuthRead, check: RightsCheck | undefined): ClientResponse {
  const { auth } = context.state;
  const header = context.header();
  switch (asked.kind) {
    case "authStatus":
      check?.root();
      return create(AuthStatusResponseSchema, {
        header,
        enabled: auth.isEnabled,
        authRevision: auth.revision,
      });
    case "userList":
      check?.root();
      return create(AuthUserListResponseSchema, { header, users: auth.users().map(({ name }) => name) });
    case "roleList":
      check?.root();
      return create(AuthRoleListResponseSchema, { header, roles: auth.roles().map(({ name }) => name) });
    case "userGet": {
      const { name } = asked.request;
      if (check?.user !== name) check?.root();
      return create(AuthUserGetResponseSchema, { header, roles: [...auth.user(name).roles] });
    }
    case "roleGet": {
      const { role } = asked.request;
      if (!hasRole(auth, check, role)) check?.root();
      return create(AuthRoleGetResponseSchema, { header, perm: [...auth.role(role).permissions] });
    }
    case "root":
      check?.root();
      return { $typeName: "leasehold.Permit", header };
    case "user":
      return { $typeName: "leasehold.Permit", header };
    case "secret":
      return { ...secretOf(auth, asked.request.name), header };
  }
}

function hasRole(auth: AuthState, check: RightsCheck | undefined, role: string): boolean {
  const user = check?.user ?? "";
  return auth.hasUser(user) && auth.user(user).roles.includes(role);
}

function secretOf(auth: AuthState, name: string) {
  if (!auth.isEnabled) throw new CoreError("authNotEnabled");
  const isKnown = auth.hasUser(name);
  const secret = isKnown ? auth.user(name).secret : auth.secretAfter(name);
  if (isKnown && secret.length === 0) throw new CoreError("passwordNotUsed");
  return { $typeName: "leasehold.UserSecret" as const, secret, isKnown, revision: auth.revision };
}

const kinds = {
  authStatus: true,
  userGet: true,
  userList: true,
  roleGet: true,
  roleList: true,
  root: true,
  user: true,
  secret: true,
} as const satisfies Record<AuthRead["kind"], true>;

function isAuthRead(asked: ClientRequest): asked is AuthRead {
  return Object.hasOwn(kinds, asked.kind);
}
