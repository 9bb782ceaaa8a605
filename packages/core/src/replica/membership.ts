import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type MemberListResponse, MemberListResponseSchema } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import {
  type Command,
  CommandSchema,
  MemberChange_Kind as Kind,
  type MemberUpdate,
} from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { Recovered, RefusalReason } from "../raft/api.js";
import { isMember } from "../raft/membership.js";
import type { ConfigChange, Entry, MemberId, Membership } from "../raft/types.js";
import type { CoreFailure } from "../state/errors.js";
import { type CoreMember, memberFields, newestVersion, newMember, oldestVersion } from "../state/members.js";
import { LeaseholdError, least } from "leasehold/common";
import { readCommand } from "./proposals/read-command.js";
import type { Context } from "./context.js";
import type { LeaderRefusal, ProposeChange } from "./proposals/leader-messages.js";
import type { Roll, SelfDescription } from "./roll.js";

/** More members would make writes slower, and nothing safer. */
export const membersMax = 9;
/** etcd's bound: a learner costs the leader as much as a voter, but adds no vote. */
const learnersMax = 1;

/** The kind of change for the log. */
function changeKindOf(kind: Kind): ConfigChange["kind"] {
  if (kind === Kind.PROMOTE) return "promote";
  // A new voter begins as a learner: otherwise the log could wait for a server that has not started, or has
  // another address (thesis 4.2.1).
  return kind === Kind.REMOVE ? "remove" : "add-learner";
}

/**
 * The members as each server knows them, and the leader's decisions about changes. A change is one entry. The
 * log takes the vote from it when it is appended; the state takes name and address when it is applied.
 * Connections follow the log, since a new voter may be needed to commit the very entry that makes it one
 * (thesis 4.1).
 */
export class MembershipKeeping {
  readonly #context: Context;
  /**
   * Used while the state does not list members: before the first entry, or if an earlier version wrote it.
   */
  readonly #founding: readonly CoreMember[];
  readonly #self: SelfDescription | undefined;
  readonly #electionTicks: number;
  /** Members added by entries of the log that may not be applied yet. */
  readonly #added = new Map<MemberId, CoreMember>();
  /** Index of this leader's last proposed change: the next one waits until it is applied. */
  #proposedIndex = 0;
  #ticksToDescribe = 0;
  /** Address changes by entries that were not known to be committed when this server started. */
  readonly #moved = new Map<MemberId, { readonly index: number; readonly peerUrls: readonly string[] }>();
  #reported:
    | { readonly log: Membership; readonly state: readonly CoreMember[]; readonly version: number }
    | undefined;
  /** The newest version that each other member supports, as reported since this server began. */
  readonly #spoken = new Map<MemberId, number>();
  readonly #newest: number;

  constructor(
    context: Context,
    founding: readonly CoreMember[],
    self: SelfDescription | undefined,
    electionTicks: number,
    recovered: Recovered,
    newest = newestVersion,
  ) {
    this.#newest = newest;
    this.#context = context;
    this.#founding = founding;
    this.#self = self;
    this.#electionTicks = electionTicks;
    this.appended(recovered.entries);
    for (const { data, index, kind } of recovered.entries) {
      if (index <= recovered.hardState.commit || kind !== "normal" || data.length === 0) continue;
      const { body } = readCommand(index, data);
      if (body.case !== "memberUpdate") continue;
      this.#moved.set(body.value.member, { index, peerUrls: body.value.peerUrls });
    }
  }

  get #members(): readonly CoreMember[] {
    const { all } = this.#context.state.members;
    return all.length > 0 ? all : this.#founding;
  }

  list(): MemberListResponse {
    return create(MemberListResponseSchema, { members: this.#members.map(memberFields) });
  }

  // Members

  /** Entries were appended to this server's log. */
  appended(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.kind !== "config" || entry.data.length === 0) continue;
      const { body } = fromBinary(CommandSchema, entry.data);
      if (body.case !== "memberChange" || !entry.change.kind.startsWith("add-")) continue;
      const { kind, member: id, peerUrls } = body.value;
      this.#added.set(id, newMember(id, peerUrls, kind === Kind.ADD_LEARNER));
    }
  }

  /**
   * Returns the roll if it has changed since the last call.
   *
   * @throws LeaseholdError `VERSION_MISMATCH` if the cluster's version is newer than this server supports
   */
  takeRoll(): Roll | undefined {
    const { raft, state } = this.#context;
    const log = raft.membership;
    const { all, removed } = state.members;
    const { version } = state;
    const isSame =
      this.#reported?.log === log && this.#reported.state === all && this.#reported.version === version;
    if (!this.#forgetMoves() && isSame) return undefined;
    if (version > this.#newest) throw outOfDate(version, this.#newest);
    this.#reported = { log, state: all, version };
    const applied = this.#members;
    const members = applied.map((member) => this.#withMove(member));
    for (const [id, member] of this.#added) {
      if (applied.some((each) => each.id === id) || removed.has(id)) this.#added.delete(id);
      else if (isMember(log, id)) members.push(member);
    }
    return { members, removed: new Set(removed), version };
  }

  /**
   * A member that changed its address without learning that the change was committed is at the new address:
   * its vote may be needed to commit the change.
   */
  #withMove(member: CoreMember): CoreMember {
    const moved = this.#moved.get(member.id);
    if (moved === undefined) return member;
    return { ...member, peerUrls: [...new Set([...member.peerUrls, ...moved.peerUrls])] };
  }

  /**
   * Returns whether the outcome of some address changes is now known. Other entries may have replaced them.
   */
  #forgetMoves(): boolean {
    const before = this.#moved.size;
    for (const [id, { index }] of this.#moved)
      if (this.#context.appliedIndex >= index) this.#moved.delete(id);
    return this.#moved.size < before;
  }

  // The leader's part

  /** This server now leads. */
  begin(): void {
    this.#proposedIndex = 0;
    const { cluster, state } = this.#context;
    const isNew = state.cluster === 0n;
    if (!isNew && (state.members.all.length > 0 || this.#founding.length === 0)) return;
    const members = this.#founding.map((member) => ({
      ...member,
      peerUrls: [...member.peerUrls],
      clientUrls: [...member.clientUrls],
    }));
    this.#context.propose({ case: "bootstrap", value: { cluster, members } });
  }

  /** Handles a membership change requested by a client of any server. */
  proposeFor(message: ProposeChange, isLeading: boolean): void {
    const { leadership, appliedIndex, state } = this.#context;
    // All changes that this leader or an earlier one began are applied by then.
    const isReady = isLeading && appliedIndex >= this.#proposedIndex && state.members.all.length > 0;
    if (message.term !== leadership.term || !isReady) {
      this.#refuse(message, "leaderChanged");
      return;
    }
    const { body } = fromBinary(CommandSchema, message.command);
    const objection = this.#objectionTo(body);
    if (objection !== undefined) {
      this.#refuse(message, objection);
      return;
    }
    const proposed = this.#propose(body, message.command);
    if (proposed.accepted) this.#proposedIndex = proposed.index;
    else this.#refuse(message, failureOfChange(proposed.reason));
  }

  #propose(body: Command["body"], command: Uint8Array): ReturnType<Context["raft"]["propose"]> {
    const { raft } = this.#context;
    if (body.case !== "memberChange") return raft.propose([command]);
    const { kind, member } = body.value;
    return raft.proposeChange({ kind: changeKindOf(kind), member }, command);
  }

  #objectionTo(body: Command["body"]): LeaderRefusal["failure"] | undefined {
    const { members } = this.#context.state;
    if (body.case === "memberUpdate") return this.#objectionToUpdate(body.value);
    if (body.case !== "memberChange") return "memberNotFound";
    const { kind, member: id, peerUrls } = body.value;
    if (kind === Kind.ADD_VOTER || kind === Kind.ADD_LEARNER)
      return this.#objectionToAdd(peerUrls, kind === Kind.ADD_LEARNER);
    const member = members.get(id);
    if (member === undefined) return "memberNotFound";
    if (kind === Kind.REMOVE) return this.#objectionToRemoval(member);
    if (!member.learner) return "notLearner";
    return hasStarted(member) ? undefined : "learnerNotReady";
  }

  #objectionToUpdate({ member, peerUrls }: MemberUpdate): LeaderRefusal["failure"] | undefined {
    const { members } = this.#context.state;
    if (members.get(member) === undefined) return "memberNotFound";
    // Servers that don't know the new address ask the other members (`server/peers`).
    return members.at(peerUrls, member) === undefined ? undefined : "peerUrlExists";
  }

  #objectionToAdd(peerUrls: readonly string[], learner: boolean): LeaderRefusal["failure"] | undefined {
    const { members } = this.#context.state;
    if (members.at(peerUrls) !== undefined) return "peerUrlExists";
    if (members.all.length >= membersMax) return "tooManyMembers";
    const voters = members.all.filter((member) => !member.learner);
    if (learner && members.all.length - voters.length >= learnersMax) return "tooManyLearners";
    const started = countStarted(voters);
    // A single started server may always add a second one: otherwise a core could never grow.
    const isFirst = voters.length === 1 && started === 1;
    if (!learner && !isFirst && started < majority(voters.length + 1)) return "notEnoughStarted";
    return this.#active(voters).length === voters.length ? undefined : "unhealthy";
  }

  #objectionToRemoval(member: CoreMember): LeaderRefusal["failure"] | undefined {
    const { raft, state } = this.#context;
    // Present voters only: a member that will become a voter adds nothing to a majority yet.
    const voters = state.members.all.filter(({ id }) => raft.membership.voters.includes(id));
    if (!voters.includes(member)) return undefined;
    const others = voters.filter((voter) => voter !== member);
    if (others.length === 0 || countStarted(others) < majority(others.length)) return "notEnoughStarted";
    const active = this.#active(voters);
    // Removing a member that is down disturbs nothing.
    if (!active.includes(member)) return undefined;
    return active.length - 1 >= majority(others.length) ? undefined : "unhealthy";
  }

  /** Voters heard from in the last election timeout, and this server. */
  #active(voters: readonly CoreMember[]): CoreMember[] {
    const { id: self, raft } = this.#context;
    const silent = new Map(raft.status().followers.map(({ id, silentTicks }) => [id, silentTicks]));
    return voters.filter(({ id }) => id === self || (silent.get(id) ?? Infinity) < this.#electionTicks);
  }

  #refuse({ from, number, term }: ProposeChange, failure: LeaderRefusal["failure"]): void {
    const { id } = this.#context;
    this.#context.send({ kind: "leader-refusal", from: id, to: from, number, term, failure });
  }

  /** Promotes learners that were added as voters and have caught up. */
  promote(): void {
    const { appliedIndex, raft, state } = this.#context;
    if (appliedIndex < this.#proposedIndex) return;
    const next = state.members.all.find((member) => member.joining && hasStarted(member));
    if (next === undefined) return;
    const body = { case: "memberChange", value: { kind: Kind.PROMOTE, member: next.id } } as const;
    const command = toBinary(CommandSchema, create(CommandSchema, { body }));
    const proposed = raft.proposeChange({ kind: "promote", member: next.id }, command);
    if (proposed.accepted) this.#proposedIndex = proposed.index;
  }

  /** Another server has reported the version it supports. */
  speaks(member: MemberId, version: number): void {
    this.#spoken.set(member, version);
  }

  /**
   * Raises the cluster's version when every member supports a later one. All members must be connected: one
   * that is away might come back with its previous version.
   */
  raise(): void {
    const { appliedIndex, id: self, state } = this.#context;
    const { all } = state.members;
    if (appliedIndex < this.#proposedIndex || all.length === 0) return;
    const spoken = all.map(({ id }) =>
      id === self ? this.#newest : (this.#spoken.get(id) ?? oldestVersion),
    );
    const version = least(spoken);
    if (version <= state.version || this.#active(all).length < all.length) return;
    const proposed = this.#context.propose({ case: "clusterVersion", value: { version } });
    if (proposed.accepted) this.#proposedIndex = proposed.index;
  }

  // This server's description of itself

  /** Sends this server's description again until the log has it. */
  tick(): void {
    this.#ticksToDescribe = Math.max(0, this.#ticksToDescribe - 1);
    const { id, knowsLeader, state } = this.#context;
    const known = state.members.get(id);
    if (this.#self === undefined || known === undefined || !knowsLeader || this.#ticksToDescribe > 0) return;
    const { clientUrls, disk, name } = this.#self;
    const isKnown = known.name === name && known.disk !== 0n && sameTexts(known.clientUrls, clientUrls);
    if (isKnown) return;
    this.#ticksToDescribe = this.#electionTicks;
    const value = { member: id, name, clientUrls: [...clientUrls], disk };
    this.#context.proposeAnywhere({ case: "memberAttributes", value });
  }
}

/**
 * Whether the member's disk is known to all members: from then on, losing it, and the promises on it, cannot
 * go unnoticed.
 */
function hasStarted({ disk }: CoreMember): boolean {
  return disk !== 0n;
}

function majority(servers: number): number {
  return Math.floor(servers / 2) + 1;
}

function countStarted(members: readonly CoreMember[]): number {
  return members.filter(({ name }) => name !== "").length;
}

function sameTexts(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, index) => text === other[index]);
}

/** Nothing was appended. A temporary refusal is retried at the next tick. */
function failureOfChange(reason: RefusalReason): Extract<CoreFailure, LeaderRefusal["failure"]> {
  if (reason === "learner-behind") return "learnerNotReady";
  if (reason === "bad-change") return "memberNotFound";
  return reason === "overloaded" ? "tooManyRequests" : "leaderChanged";
}

function outOfDate(version: number, newest: number): LeaseholdError {
  const text = `the cluster speaks version ${version} by now, and this server up to ${newest}: start its present version`;
  return new LeaseholdError("VERSION_MISMATCH", text);
}
