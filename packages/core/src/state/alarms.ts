import { create } from "@bufbuild/protobuf";
import { type AlarmResponse, AlarmResponseSchema, AlarmType } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import type { Command, MemberAlarm } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { changesContent, needsRoom } from "./check.js";
import { CoreError } from "./errors.js";

/** Members with raised alarms. */
export interface Alarms<Members = ReadonlySet<bigint>> {
  readonly spaceAlarms: Members;
  readonly corruptAlarms: Members;
}

/** An alarm as clients see it. */
export interface Alarm {
  readonly memberID: bigint;
  readonly alarm: AlarmType;
}

export function noSpace(members: Iterable<bigint>): Alarm[] {
  return Array.from(members, (memberID) => ({ memberID, alarm: AlarmType.NOSPACE }));
}

export function corrupt(members: Iterable<bigint>): Alarm[] {
  return Array.from(members, (memberID) => ({ memberID, alarm: AlarmType.CORRUPT }));
}

export function allAlarms({ corruptAlarms, spaceAlarms }: Alarms<Iterable<bigint>>): Alarm[] {
  return [...corrupt(corruptAlarms), ...noSpace(spaceAlarms)];
}

export function alarmResponse(alarms: Alarm[]): AlarmResponse {
  return create(AlarmResponseSchema, { alarms });
}

/** Printed as by Go: zero values are omitted. */
export function alarmText({ alarm, memberID }: Alarm): string {
  const kind = alarm === AlarmType.CORRUPT ? "CORRUPT" : "NOSPACE";
  return `${memberID === 0n ? "" : `memberID:${memberID} `}alarm:${kind} `;
}

/**
 * Raises or disarms an alarm. Returns the members concerned: raising a raised alarm returns it again, as in
 * etcd.
 */
export function changeAlarm(alarms: Set<bigint>, { member, raised }: MemberAlarm): bigint[] {
  if (raised) alarms.add(member);
  return raised || alarms.delete(member) ? [member] : [];
}

/**
 * Returns the refusal of a command because of an alarm; undefined if there is none. Corruption takes
 * precedence: deletions free space, but must not happen then.
 */
export function refusalByAlarm(
  { corruptAlarms, spaceAlarms }: Alarms,
  body: Command["body"],
): CoreError | undefined {
  if (corruptAlarms.size > 0 && changesContent(body)) return new CoreError("corrupt");
  return spaceAlarms.size > 0 && needsRoom(body) ? new CoreError("noSpace") : undefined;
}
