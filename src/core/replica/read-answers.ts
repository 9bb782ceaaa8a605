import { create } from "@bufbuild/protobuf";
import { AlarmRequest_AlarmAction as Action, type AlarmRequest, AlarmType } from "../gen/etcd/cluster_pb.js";
import {
  LeaseKeepAliveResponseSchema,
  LeaseLeasesResponseSchema,
  type LeaseStatus,
  LeaseStatusSchema,
  LeaseTimeToLiveResponseSchema,
} from "../gen/etcd/rpc_pb.js";
import { CoreError } from "../state/errors.js";
import { bytesOf } from "../state/keys.js";
import { alarmResponse } from "../state/state.js";
import { sortInSteps, type Steps, unitsPerStep } from "../state/steps.js";
import type { Context } from "./context.js";
import { freeze } from "./frozen-state.js";
import type { LeaderAnswer } from "./leader-messages.js";
import type { MembershipKeeping } from "./membership.js";
import type { ClientRequest, ClientResponse } from "./types.js";

type ReadRequest = Extract<ClientRequest, { kind: "range" | "txn" }>;

/**
 * The answer to a request that only reads, in steps. The caller has made sure that the state is new enough.
 *
 * @param answer the leader's, unless the request was not to ask it
 */
export function* answerRead(
  context: Context,
  members: MembershipKeeping,
  asked: ClientRequest,
  answer: LeaderAnswer | undefined,
): Steps<ClientResponse> {
  if (asked.kind === "range" || asked.kind === "txn") return yield* read(context, asked);
  if (asked.kind === "leaseTimeToLive")
    return yield* timeToLive(context, asked.request, answer?.ttlSeconds ?? -1);
  if (asked.kind === "freeze") {
    while (context.state.isApplying) yield;
    return freeze(context);
  }
  if (asked.kind === "memberList") return Object.assign(members.list(), { header: context.header(0) });
  if (asked.kind === "alarm") return alarms(context, asked.request);
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

/** With the revision from before it was refreshed. */
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
): Steps<ClientResponse> {
  // All the keys that hang on it at one revision.
  while (context.state.isApplying) yield;
  const header = context.header();
  const lease = context.state.leases.get(ID);
  if (lease === undefined || ttlSeconds < 0)
    return create(LeaseTimeToLiveResponseSchema, { header, ID, TTL: -1n });
  const names: Uint8Array[] = [];
  if (keys)
    for (const key of yield* sortInSteps([...lease.keys], (a, b) => (a < b ? -1 : 1)))
      if (names.push(bytesOf(key)) % unitsPerStep === 0) yield;
  return create(LeaseTimeToLiveResponseSchema, {
    header,
    ID,
    TTL: BigInt(ttlSeconds),
    grantedTTL: BigInt(lease.ttlSeconds),
    keys: names,
  });
}

function alarms(context: Context, { action, alarm }: AlarmRequest): ClientResponse {
  const isAsked = action === Action.GET && alarm !== AlarmType.CORRUPT;
  const response = alarmResponse(isAsked ? context.state.spaceAlarms : []);
  response.header = context.header();
  return response;
}

/** Each that is there all the while. */
function* leases(context: Context): Steps<ClientResponse> {
  const header = context.header();
  const leases: LeaseStatus[] = [];
  for (const { id } of context.state.leases.all())
    if (leases.push(create(LeaseStatusSchema, { ID: id })) % unitsPerStep === 0) yield;
  return create(LeaseLeasesResponseSchema, { header, leases });
}
