import { create } from "@bufbuild/protobuf";
import { type AlarmResponse, AlarmResponseSchema, AlarmType } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import type { Command, MemberAlarm } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { changesContent, needsRoom } from "./check.js";
import { CoreError } from "./errors.js";

/** Members whose alarms are raised. */
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

/** As Go prints the message: a zero is left out. */
export function alarmText({ alarm, memberID }: Alarm): string {
  const kind = alarm === AlarmType.CORRUPT ? "CORRUPT" : "NOSPACE";
  return `${memberID === 0n ? "" : `memberID:${memberID} `}alarm:${kind} `;
}

/** Of which members that is said: who raises an alarm that is raised hears of it again, as at etcd. */
export function changeAlarm(alarms: Set<bigint>, { member, raised }: MemberAlarm): bigint[] {
  if (raised) alarms.add(member);
  return raised || alarms.delete(member) ? [member] : [];
}

/**
 * Why nobody may do that now; undefined if alarms are not in the way. Corruption comes first: space can be had
 * again by deleting, and that must not happen then.
 */
export function refusalByAlarm(
  { corruptAlarms, spaceAlarms }: Alarms,
  body: Command["body"],
): CoreError | undefined {
  if (corruptAlarms.size > 0 && changesContent(body)) return new CoreError("corrupt");
  return spaceAlarms.size > 0 && needsRoom(body) ? new CoreError("noSpace") : undefined;
}
