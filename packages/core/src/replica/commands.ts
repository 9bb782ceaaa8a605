import { create, toBinary } from "@bufbuild/protobuf";
import type { Random } from "leasehold/common";
import { AlarmRequest_AlarmAction as Action, AlarmType } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import {
  type Command,
  CommandSchema,
  MemberChange_Kind as Kind,
} from "leasehold/etcd/gen/leasehold/command_pb.js";
import { checkDeleteRange, checkPut, checkRange, checkTxn, isReadOnly } from "../state/check.js";
import { refusalByAlarm } from "../state/alarms.js";
import { CoreError } from "../state/errors.js";
import { ttlSecondsMax } from "../state/leases.js";
import { readCommand } from "./proposals/read-command.js";
import type { CommandBody, Context } from "./context.js";
import type { ClientRequest } from "./types.js";

/**
 * Minimum lease, as a multiple of the election timeout: otherwise a change of leader alone could end a lease.
 * etcd's value.
 */
const ttlFloorFactor = 1.5;

/**
 * Returns the command to propose for a request; undefined if the request only reads or refreshes.
 * @throws CoreError for requests that can be refused without the log
 */
export function commandFor(request: ClientRequest, context: Context, number: number): Command | undefined {
  const body = bodyFor(request, context);
  if (body === undefined) return undefined;
  const command = create(CommandSchema, { proposer: context.id, request: BigInt(number), body });
  // The command would be refused when applied, and take room in the log until then.
  const refusal = refusalByAlarm(context.state, command.body);
  if (refusal !== undefined) throw refusal;
  return command;
}

/** @throws CoreError `requestTooLarge` */
export function encodeCommand(command: Command, { limits }: Context): Uint8Array<ArrayBuffer> {
  const bytes = toBinary(CommandSchema, command);
  if (bytes.length > limits.requestBytesMax) throw new CoreError("requestTooLarge");
  return bytes;
}

/** Returns the same command under another number. */
export function renumbered(command: Uint8Array, number: number): Uint8Array<ArrayBuffer> {
  return toBinary(CommandSchema, { ...readCommand(0, command), request: BigInt(number) });
}

function bodyFor(asked: ClientRequest, context: Context): CommandBody | undefined {
  switch (asked.kind) {
    case "range":
      checkRange(asked.request);
      return undefined;
    case "put":
      checkPut(asked.request);
      return { case: "put", value: asked.request };
    case "deleteRange":
      checkDeleteRange(asked.request);
      return { case: "deleteRange", value: asked.request };
    case "txn":
      checkTxn(asked.request, context.limits.operationsMax);
      return isReadOnly(asked.request) ? undefined : { case: "txn", value: asked.request };
    case "compact":
      return { case: "compact", value: asked.request };
    case "leaseGrant": {
      const { TTL, ID } = asked.request;
      const value = { TTL: ttlFor(TTL, context), ID: ID === 0n ? freeLeaseId(context) : ID };
      return { case: "leaseGrant", value };
    }
    case "registerLease": {
      const { id = 0n, name, ttlSeconds } = asked.request;
      if (name === "") throw new CoreError("leaseNameMissing");
      return { case: "registerLease", value: { name, ttl: ttlFor(ttlSeconds, context), id } };
    }
    case "leaseRevoke":
      return { case: "leaseRevoke", value: asked.request };
    case "alarm": {
      const { action, alarm, memberID: member } = asked.request;
      if (action === Action.GET) return undefined;
      const value = { member, raised: action === Action.ACTIVATE };
      if (alarm === AlarmType.NOSPACE) return { case: "spaceAlarm", value };
      // Other alarms are never raised, so a request to disarm one has no effect.
      return alarm === AlarmType.CORRUPT ? { case: "corruptAlarm", value } : undefined;
    }
    case "memberAdd": {
      const { isLearner, peerURLs } = asked.request;
      const kind = isLearner ? Kind.ADD_LEARNER : Kind.ADD_VOTER;
      const value = { kind, member: freeMemberId(context), peerUrls: checkedUrls(peerURLs) };
      return { case: "memberChange", value };
    }
    case "memberRemove":
      return { case: "memberChange", value: { kind: Kind.REMOVE, member: asked.request.ID } };
    case "memberPromote":
      return { case: "memberChange", value: { kind: Kind.PROMOTE, member: asked.request.ID } };
    case "memberUpdate": {
      const { ID: member, peerURLs } = asked.request;
      return { case: "memberUpdate", value: { member, peerUrls: checkedUrls(peerURLs) } };
    }
    case "auth":
      if (adding.has(asked.request.case) && context.state.auth.bytes >= context.limits.authBytesMax)
        throw new CoreError("tooManyRights");
      return asked.request;
    default:
      return undefined;
  }
}

/** Refused when space runs out; commands that free space are not. */
const adding: ReadonlySet<CommandBody["case"]> = new Set([
  "roleAdd",
  "roleGrantPermission",
  "userAdd",
  "userGrantRole",
] as const);

/** Exceeds the number of addresses of any machine. */
const peerUrlsMax = 16;

function checkedUrls(urls: readonly string[]): string[] {
  const isFit = urls.length > 0 && urls.length <= peerUrlsMax && urls.every((url) => urlPattern.test(url));
  if (!isFit || new Set(urls).size < urls.length) throw new CoreError("peerUrlsInvalid");
  return [...urls].sort();
}

/** An address and a port, or the path of a Unix socket; the dialer checks the rest. */
const urlPattern = /^(?:https?:\/\/[^\s/]{1,255}:\d{1,5}|unixs?:\/\/[^\s,]{1,103})$/;

/** Ids are never reused, so late messages to a former member reach no other member. */
function freeMemberId({ random, state }: Context): bigint {
  for (;;) {
    const id = randomBits(random, 64);
    if (id !== 0n && state.members.get(id) === undefined && !state.members.removed.has(id)) return id;
  }
}

function ttlFor(ttlSeconds: bigint, { electionMs, state }: Context): bigint {
  // As in etcd, alarms take precedence over other reasons.
  if (state.corruptAlarms.size > 0) throw new CoreError("corrupt");
  if (state.spaceAlarms.size > 0) throw new CoreError("noSpace");
  if (ttlSeconds > ttlSecondsMax) throw new CoreError("leaseTtlTooLarge");
  const floor = BigInt(Math.ceil((ttlFloorFactor * electionMs) / 1_000));
  return ttlSeconds < floor ? floor : ttlSeconds;
}

/** A random id, which is nearly always free. Otherwise the grant is refused when it is applied. */
function freeLeaseId({ random, state }: Context): bigint {
  for (;;) {
    const id = randomBits(random, 63);
    if (id !== 0n && state.leases.get(id) === undefined) return id;
  }
}

/** Bits taken from one random number. Every generator provides more. */
const bitsPerDraw = 21;

function randomBits(random: Random, bits: number): bigint {
  let drawn = 0n;
  for (let count = 0; count < bits; count += bitsPerDraw)
    drawn = (drawn << BigInt(bitsPerDraw)) | BigInt(Math.floor(random.next() * 2 ** bitsPerDraw));
  return BigInt.asUintN(bits, drawn);
}
