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

/** More make writes slower and nothing safer. */
export const membersMax = 9;
/** etcd's bound: each learner costs the leader as much as a voter, and helps nobody. */
const learnersMax = 1;

/** What an entry says to the log. */
function changeKindOf(kind: Kind): ConfigChange["kind"] {
  if (kind === Kind.PROMOTE) return "promote";
  // One that is to vote learns first: else the log could wait for a server that has not started, or is at no
  // such address (thesis 4.2.1).
  return kind === Kind.REMOVE ? "remove" : "add-learner";
}

/**
 * Who the servers are, at each of them, and the leader's judgement of changes. A change is one entry: the log
 * takes the vote from it when it is appended, the state name and address when it is applied. The connections
 * follow the log, as a new voter may be needed to commit the very entry that makes it one (thesis 4.1).
 */
export class MembershipKeeping {
  readonly #context: Context;
  /** Of a state that does not say who the members are: of earlier versions, and before the first entry. */
  readonly #founding: readonly CoreMember[];
  readonly #self: SelfDescription | undefined;
  readonly #electionTicks: number;
  /** Added by entries of the log that may not have been applied yet. */
  readonly #added = new Map<MemberId, CoreMember>();
  /** Of the last change that this leader has proposed: the next one waits until it is applied. */
  #proposedIndex = 0;
  #ticksToDescribe = 0;
  /** By entries of which it was not known when this server began whether they were committed. */
  readonly #moved = new Map<MemberId, { readonly index: number; readonly peerUrls: readonly string[] }>();
  #told:
    | { readonly log: Membership; readonly state: readonly CoreMember[]; readonly version: number }
    | undefined;
  /** The newest version that each of the others speaks, as it has said since this server began. */
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

  // Who is there

  /** Takes note of entries that were appended to the log here. */
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
   * Set when it has changed since the last call.
   *
   * @throws LeaseholdError `VERSION_MISMATCH` if the cluster has gone beyond what this server speaks
   */
  takeRoll(): Roll | undefined {
    const { raft, state } = this.#context;
    const log = raft.membership;
    const { all, removed } = state.members;
    const { version } = state;
    const isSame = this.#told?.log === log && this.#told.state === all && this.#told.version === version;
    if (!this.#forgetMoves() && isSame) return undefined;
    if (version > this.#newest) throw outOfDate(version, this.#newest);
    this.#told = { log, state: all, version };
    const applied = this.#members;
    const members = applied.map((member) => this.#withMove(member));
    for (const [id, member] of this.#added) {
      if (applied.some((each) => each.id === id) || removed.has(id)) this.#added.delete(id);
      else if (isMember(log, id)) members.push(member);
    }
    return { members, removed: new Set(removed), version };
  }

  /**
   * Who has moved, and missed that it was agreed on, is at the new address: it may be needed to agree on it
   * anew.
   */
  #withMove(member: CoreMember): CoreMember {
    const moved = this.#moved.get(member.id);
    if (moved === undefined) return member;
    return { ...member, peerUrls: [...new Set([...member.peerUrls, ...moved.peerUrls])] };
  }

  /** Whether there were some of which it is known by now what became of them: another entry may stand there. */
  #forgetMoves(): boolean {
    const before = this.#moved.size;
    for (const [id, { index }] of this.#moved)
      if (this.#context.appliedIndex >= index) this.#moved.delete(id);
    return this.#moved.size < before;
  }

  // What the leader does

  /** This server leads from now on. */
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

  /** A client, here or at another server, wants the membership changed. */
  proposeFor(message: ProposeChange, isLeading: boolean): void {
    const { leadership, appliedIndex, state } = this.#context;
    // What an earlier leader has begun is applied by then, and so is what this one has.
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
    // A server that misses the new address asks the other members (`server/peers`).
    return members.at(peerUrls, member) === undefined ? undefined : "peerUrlExists";
  }

  #objectionToAdd(peerUrls: readonly string[], learner: boolean): LeaderRefusal["failure"] | undefined {
    const { members } = this.#context.state;
    if (members.at(peerUrls) !== undefined) return "peerUrlExists";
    if (members.all.length >= membersMax) return "tooManyMembers";
    const voters = members.all.filter((member) => !member.learner);
    if (learner && members.all.length - voters.length >= learnersMax) return "tooManyLearners";
    const started = countStarted(voters);
    // One server that grows to two: there is no other way to more of them.
    const isFirst = voters.length === 1 && started === 1;
    if (!learner && !isFirst && started < majority(voters.length + 1)) return "notEnoughStarted";
    return this.#active(voters).length === voters.length ? undefined : "unhealthy";
  }

  #objectionToRemoval(member: CoreMember): LeaderRefusal["failure"] | undefined {
    const { raft, state } = this.#context;
    // Those that vote now: one that only is to vote may be there, and helps nobody to a majority yet.
    const voters = state.members.all.filter(({ id }) => raft.membership.voters.includes(id));
    if (!voters.includes(member)) return undefined;
    const others = voters.filter((voter) => voter !== member);
    if (others.length === 0 || countStarted(others) < majority(others.length)) return "notEnoughStarted";
    const active = this.#active(voters);
    // One that is down is missed by nobody.
    if (!active.includes(member)) return undefined;
    return active.length - 1 >= majority(others.length) ? undefined : "unhealthy";
  }

  /** Those that were heard in the last election timeout, and this server. */
  #active(voters: readonly CoreMember[]): CoreMember[] {
    const { id: self, raft } = this.#context;
    const silent = new Map(raft.status().followers.map(({ id, silentTicks }) => [id, silentTicks]));
    return voters.filter(({ id }) => id === self || (silent.get(id) ?? Infinity) < this.#electionTicks);
  }

  #refuse({ from, number, term }: ProposeChange, failure: LeaderRefusal["failure"]): void {
    const { id } = this.#context;
    this.#context.send({ kind: "leader-refusal", from: id, to: from, number, term, failure });
  }

  /** Gives their votes to those who were to have them and have caught up. */
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

  /** Another server has said which versions it speaks. */
  speaks(member: MemberId, version: number): void {
    this.#spoken.set(member, version);
  }

  /**
   * Raises the cluster's version when every member speaks a later one. All of them have to be there: one that is
   * away may come back as it was before.
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

  // What this server says of itself

  /** Says again what the log has not taken, until it has. */
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

/** From now on all know its disk: what it promises cannot be forgotten with that without their notice. */
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

/** Nothing was appended: a refusal that passes is tried again, at the next tick. */
function failureOfChange(reason: RefusalReason): Extract<CoreFailure, LeaderRefusal["failure"]> {
  if (reason === "learner-behind") return "learnerNotReady";
  if (reason === "bad-change") return "memberNotFound";
  return reason === "overloaded" ? "tooManyRequests" : "leaderChanged";
}

function outOfDate(version: number, newest: number): LeaseholdError {
  const text = `the cluster speaks version ${version} by now, and this server up to ${newest}: start its present version`;
  return new LeaseholdError("VERSION_MISMATCH", text);
}
