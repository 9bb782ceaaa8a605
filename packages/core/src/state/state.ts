import { create } from "@bufbuild/protobuf";
import {
  type AlarmResponse,
  type MemberAddResponse,
  MemberAddResponseSchema,
  type MemberPromoteResponse,
  MemberPromoteResponseSchema,
  type MemberRemoveResponse,
  MemberRemoveResponseSchema,
  type MemberUpdateResponse,
  MemberUpdateResponseSchema,
} from "leasehold/etcd/gen/etcd/cluster_pb.js";
import {
  type CompactionResponse,
  CompactionResponseSchema,
  type DeleteRangeResponse,
  type LeaseGrantResponse,
  LeaseGrantResponseSchema,
  type LeaseRevokeResponse,
  LeaseRevokeResponseSchema,
  type PutResponse,
  type RangeRequest,
  type RangeResponse,
  type TxnRequest,
  type TxnResponse,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import {
  type Bootstrap,
  type Command,
  type ClusterTime,
  type LeaseExpire,
  type MemberChange,
  MemberChange_Kind as Kind,
} from "leasehold/etcd/gen/leasehold/command_pb.js";
import { append } from "leasehold/common";
import { alarmResponse, changeAlarm, corrupt, noSpace, refusalByAlarm } from "./alarms.js";
import { AnswerRoom } from "./long-range.js";
import { applyAuth, type AuthAnswer } from "./apply-auth.js";
import { AuthState } from "./auth-state.js";
import { checkCommand } from "./check-rights.js";
import { CoreError } from "./errors.js";
import { type LeaseState, keysOf, Leases, ttlSecondsMax } from "./leases.js";
import { memberFields, Members, oldestVersion } from "./members.js";
import { readRange } from "./range.js";
import { Revisions, type Version } from "./revisions.js";
import { finish, sortInSteps, type Steps } from "./steps.js";
import { deleteKeys, putKey, readTxn, runTxn } from "./txn.js";
import { Write } from "./write.js";

/** What a command answers, without a header. */
export type CommandAnswer =
  | PutResponse
  | DeleteRangeResponse
  | TxnResponse
  | CompactionResponse
  | LeaseGrantResponse
  | LeaseRevokeResponse
  | AlarmResponse
  | AuthAnswer
  | MembershipAnswer;

/** With all members, as they are then. */
export type MembershipAnswer =
  | MemberAddResponse
  | MemberRemoveResponse
  | MemberPromoteResponse
  | MemberUpdateResponse;

export interface Applied {
  /** Absent for what nobody waits for. */
  readonly answer: CommandAnswer | CoreError | undefined;
  /** Whether or not anybody waits for its answer. */
  readonly isDone: boolean;
  /** The revision after it. */
  readonly revision: number;
  /** What it changed, one revision after the other, and each in order. */
  readonly changes: readonly Version[];
  /** Leases that came into being, and such that ended. */
  readonly granted: readonly bigint[];
  readonly ended: readonly bigint[];
}

/**
 * The state machine of the core: keys with their past, and leases. The same commands in the same order make
 * the same state on every server; it knows no time.
 */
export class CoreState {
  readonly revisions = new Revisions();
  readonly leases = new Leases();
  readonly members = new Members();
  /** Who may do what. */
  readonly auth = new AuthState();
  /** Which cluster this is; 0 until its first command. */
  cluster = 0n;
  /** Of what the servers speak, and the log may have: it never falls. */
  version = oldestVersion;
  /** Milliseconds that the cluster has been led, as last replicated. */
  clusterMs = 0;
  /**
   * Members that have more than they can hold: until they are put out, nothing is taken that needs more room.
   */
  readonly spaceAlarms = new Set<bigint>();
  /**
   * Members that have another content than the others, 0 if it cannot be told which: until they are put out,
   * no key or lease changes.
   */
  readonly corruptAlarms = new Set<bigint>();
  /**
   * A command is being applied: keys come and go from leases already, and what is read of revisions does not
   * show it yet.
   */
  isApplying = false;
  /** What the command that is being applied changes: one revision after the other, and each in order. */
  #changes: Version[] = [];
  #room = new AnswerRoom(Infinity);
  #granted: bigint[] = [];
  #index = 0;
  #ended: bigint[] = [];

  /** All steps of `applying`. */
  apply(command: Command, term: number, index = 0): Applied {
    return finish(this.applying(command, term, index));
  }

  /**
   * Applies a command in steps: nothing of what it changes can be read before the last of them, and no other
   * command begins before. A command that is refused changes nothing. `term` and `index` are those of the
   * command's entry.
   *
   * @param answerBytes what the answer may have, as the state counts; less than 0 if nobody waits for it:
   * what it changes is the same
   */
  *applying(command: Command, term: number, index: number, answerBytes = Infinity): Steps<Applied> {
    this.isApplying = true;
    this.#index = index;
    this.#room = new AnswerRoom(answerBytes);
    this.#changes = [];
    this.#granted = [];
    this.#ended = [];
    const answer = yield* this.#answer(command, term);
    this.isApplying = false;
    return {
      answer: answerBytes < 0 ? undefined : this.#answerInRoom(answer),
      isDone: !(answer instanceof CoreError),
      revision: this.revisions.current,
      changes: this.#changes,
      granted: this.#granted,
      ended: this.#ended,
    };
  }

  #answerInRoom(answer: CommandAnswer | CoreError | undefined): CommandAnswer | CoreError | undefined {
    const isTooLarge = this.#room.isExceeded && !(answer instanceof CoreError);
    return isTooLarge ? new CoreError("answerTooLargeDone") : answer;
  }

  /** What stands there now, whatever is applied while it is read. */
  read(request: RangeRequest, answerBytes = Infinity): Steps<RangeResponse> {
    const isOneKey = request.rangeEnd.length === 0;
    const view = isOneKey ? this.revisions : this.revisions.view();
    const room = new AnswerRoom(answerBytes);
    return withinRoom(readRange(view, request, room), room);
  }

  /** The same for a transaction that changes nothing (`isReadOnly`). */
  readTxn(request: TxnRequest, answerBytes = Infinity): Steps<TxnResponse> {
    const room = new AnswerRoom(answerBytes);
    return withinRoom(readTxn(this.revisions.view(), request, room), room);
  }

  *#answer(command: Command, term: number): Steps<Applied["answer"]> {
    try {
      return yield* this.#carryOut(command, term);
    } catch (error) {
      if (error instanceof CoreError) return error;
      throw error;
    }
  }

  *#carryOut(command: Command, term: number): Steps<CommandAnswer | undefined> {
    const { body, proposer, request } = command;
    const refusal = refusalByAlarm(this, body);
    if (refusal !== undefined) throw refusal;
    // What a leader proposes by itself has no proposer: it acts for the core, and not for a client.
    if (this.auth.isEnabled && proposer !== 0n) yield* checkCommand(this.auth, this.leases, command);
    switch (body.case) {
      case "put": {
        const write = this.#begin();
        return this.#commit(write, putKey(write, body.value));
      }
      case "deleteRange": {
        const write = this.#begin();
        return this.#commit(write, yield* deleteKeys(write, body.value));
      }
      case "txn": {
        const write = this.#begin();
        return this.#commit(write, yield* runTxn(write, body.value));
      }
      case "compact":
        this.#compact(body.value.revision);
        return create(CompactionResponseSchema);
      case "leaseGrant":
        return this.#grant(body.value.ID, body.value.TTL);
      case "registerLease":
        return this.#grant(body.value.id || this.#freeId(request), body.value.ttl, body.value.name);
      case "leaseRevoke":
        yield* this.#revoke(body.value.ID);
        return create(LeaseRevokeResponseSchema);
      case "leaseExpire":
        // The leader of that term found them over; a later leader may have promised more time since.
        // With a corrupt member keys stay as they are: the leader proposes it again when that is over.
        if (body.value.term === BigInt(term) && this.corruptAlarms.size === 0)
          yield* this.#expire(body.value);
        return undefined;
      case "clusterTime":
        this.#keepTime(body.value);
        return undefined;
      case "spaceAlarm":
        return alarmResponse(noSpace(changeAlarm(this.spaceAlarms, body.value)));
      case "corruptAlarm":
        return alarmResponse(corrupt(changeAlarm(this.corruptAlarms, body.value)));
      case "bootstrap":
        this.#found(body.value);
        return undefined;
      case "memberChange":
        return this.#changeMembers(body.value);
      case "memberUpdate":
        this.members.update(body.value);
        return create(MemberUpdateResponseSchema, { members: this.#memberFields() });
      case "memberAttributes":
        this.members.describe(body.value);
        return undefined;
      case "clusterVersion":
        this.version = Math.max(this.version, body.value.version);
        return undefined;
      default:
        return applyAuth(this.auth, body);
    }
  }

  /** What the state takes in memory, about. */
  get bytes(): number {
    return this.revisions.bytes + this.leases.bytes + this.auth.bytes;
  }

  /**
   * What belongs to the cluster that it was the state of goes: it becomes that of another one. Every lease has
   * its whole time again: the other cluster may have acknowledged refreshes since, of which nothing is here.
   */
  becomeNew(): void {
    this.cluster = 0n;
    this.members.set([]);
    this.members.removed.clear();
    this.spaceAlarms.clear();
    this.corruptAlarms.clear();
    for (const lease of this.leases.all()) {
      lease.leftMs = undefined;
      lease.grantedIndex = 0;
    }
  }

  #found({ cluster, members }: Bootstrap): void {
    if (this.cluster === 0n) this.cluster = cluster;
    if (this.members.all.length === 0) this.members.set(members);
  }

  #changeMembers(change: MemberChange): MembershipAnswer {
    this.members.change(change);
    const members = this.#memberFields();
    if (change.kind === Kind.REMOVE) {
      // It needs no room any more, and its content is nobody's.
      this.spaceAlarms.delete(change.member);
      this.corruptAlarms.delete(change.member);
      return create(MemberRemoveResponseSchema, { members });
    }
    if (change.kind === Kind.PROMOTE) return create(MemberPromoteResponseSchema, { members });
    const member = members.find(({ ID }) => ID === change.member)!;
    return create(MemberAddResponseSchema, { member, members });
  }

  #memberFields(): ReturnType<typeof memberFields>[] {
    return this.members.all.map(memberFields);
  }

  #begin(before?: number): Write {
    return new Write(this.revisions, this.leases, this.#room, before);
  }

  #commit<Answer>(write: Write, answer: Answer): Answer {
    this.#keep(write);
    write.commit();
    return answer;
  }

  #keep({ changes }: Write): void {
    if (this.#changes.length === 0) this.#changes = changes;
    else append(this.#changes, changes);
  }

  #compact(revision: bigint): void {
    if (revision > BigInt(this.revisions.current)) throw new CoreError("futureRevision");
    if (Number(revision) <= this.revisions.compacted) throw new CoreError("compacted");
    this.revisions.compact(Number(revision));
  }

  #grant(id: bigint, ttl: bigint, name?: string): LeaseGrantResponse {
    if (ttl > ttlSecondsMax) throw new CoreError("leaseTtlTooLarge");
    const lease = this.leases.grant(id, Number(ttl), name, this.#index);
    this.#granted.push(id);
    return create(LeaseGrantResponseSchema, { ID: lease.id, TTL: BigInt(lease.ttlSeconds) });
  }

  /**
   * Every server finds the same. No id is used again, as the proposers' numbers are not: else who held a
   * lease that has ended could refresh its successor.
   */
  #freeId(number: bigint): bigint {
    let id = BigInt.asUintN(62, number) + 1n;
    while (this.leases.get(id) !== undefined) id += 1n;
    return id;
  }

  *#revoke(id: bigint): Steps<void> {
    if (this.leases.get(id) === undefined) throw new CoreError("leaseNotFound");
    const write = this.#begin();
    yield* this.#end(write, id);
    this.#commit(write, undefined);
  }

  /**
   * Each in a revision of its own, as etcd does. The leaders of earlier versions had all of them end in one.
   * None of these revisions can be read before the last: what it changes is told as a whole, and a watch that
   * read on from one of them, or was told of it as progress, would miss what is told then, or hear it twice.
   */
  *#expire({ ids, apart, seen }: LeaseExpire): Steps<void> {
    let write = this.#begin();
    for (const id of ids) {
      if (this.#meant(id, seen) === undefined) continue;
      yield* this.#end(write, id);
      if (!apart) continue;
      this.#keep(write);
      write = this.#begin(write.revision);
    }
    this.#commit(write, undefined);
  }

  /**
   * A client may choose an id anew when its lease is revoked. What the leader has found out about the lease
   * before is not of this one, then.
   */
  #meant(id: bigint, seen: bigint | undefined): LeaseState | undefined {
    const lease = this.leases.get(id);
    return lease === undefined || (seen !== undefined && lease.grantedIndex > Number(seen))
      ? undefined
      : lease;
  }

  /** All keys of a lease go in one revision; none if there are no keys. */
  *#end(write: Write, id: bigint): Steps<void> {
    const keys = [...keysOf(this.leases.get(id)!)];
    yield* write.deleteKeys(yield* sortInSteps(keys, (a, b) => (a < b ? -1 : 1)));
    this.leases.remove(id);
    this.#ended.push(id);
  }

  #keepTime({ milliseconds, left, seen }: ClusterTime): void {
    this.clusterMs = Math.max(this.clusterMs, Number(milliseconds));
    for (const { id, milliseconds: leftMs } of left) {
      const lease = this.#meant(id, seen);
      if (lease !== undefined) lease.leftMs = Number(leftMs);
    }
  }
}

function* withinRoom<Answer>(steps: Steps<Answer>, room: AnswerRoom): Steps<Answer> {
  const answer = yield* steps;
  if (room.isExceeded) throw new CoreError("answerTooLarge");
  return answer;
}
