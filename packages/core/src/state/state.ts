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
import { AnswerBudget } from "./long-range.js";
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

/** The answer to a command, without a header. */
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

/** An answer with all members after the change. */
export type MembershipAnswer =
  | MemberAddResponse
  | MemberRemoveResponse
  | MemberPromoteResponse
  | MemberUpdateResponse;

export interface Applied {
  /** Undefined if no client waits for it. */
  readonly answer: CommandAnswer | CoreError | undefined;
  /** Whether the command was carried out, even if no client waits for its answer. */
  readonly isDone: boolean;
  /** The revision after the command. */
  readonly revision: number;
  /** The command's changes, ordered by revision and within each. */
  readonly changes: readonly Version[];
  /** Leases granted, and leases that ended. */
  readonly granted: readonly bigint[];
  readonly ended: readonly bigint[];
}

/**
 * The state machine of the core: keys with their history, and leases. Equal commands in the same order make
 * the same state on every server. It has no notion of time.
 */
export class CoreState {
  readonly revisions = new Revisions();
  readonly leases = new Leases();
  readonly members = new Members();
  /** Users, roles and permissions. */
  readonly auth = new AuthState();
  /** Id of the cluster; 0 until its first command. */
  cluster = 0n;
  /** The version in which servers communicate, and that the log may use. It never decreases. */
  version = oldestVersion;
  /** Milliseconds for which the cluster has had leaders, as last replicated. */
  clusterMs = 0;
  /** Members over their quota. Until these alarms are disarmed, commands that need space are refused. */
  readonly spaceAlarms = new Set<bigint>();
  /**
   * Members whose content differs from the others'; 0 if it is unclear whose is wrong. Until these alarms are
   * disarmed, no key or lease changes.
   */
  readonly corruptAlarms = new Set<bigint>();
  /**
   * A command is being applied: leases already show its changes to keys, but reads at revisions do not yet.
   */
  isApplying = false;
  /** Changes of the command being applied, ordered by revision and within each. */
  #changes: Version[] = [];
  #budget = new AnswerBudget(Infinity);
  #granted: bigint[] = [];
  #index = 0;
  #ended: bigint[] = [];

  /** Runs all steps of `applying`. */
  apply(command: Command, term: number, index = 0): Applied {
    return finish(this.applying(command, term, index));
  }

  /**
   * Applies a command in steps. None of its changes can be read before the last step, nor may another command
   * begin. A refused command changes nothing. `term` and `index` are those of the command's entry.
   *
   * @param answerBytes bound of the answer, as the state counts bytes; negative if no client waits for it.
   *   The changes are the same.
   */
  *applying(command: Command, term: number, index: number, answerBytes = Infinity): Steps<Applied> {
    this.isApplying = true;
    this.#index = index;
    this.#budget = new AnswerBudget(answerBytes);
    this.#changes = [];
    this.#granted = [];
    this.#ended = [];
    const answer = yield* this.#answer(command, term);
    this.isApplying = false;
    return {
      answer: answerBytes < 0 ? undefined : this.#answerWithinBudget(answer),
      isDone: !(answer instanceof CoreError),
      revision: this.revisions.current,
      changes: this.#changes,
      granted: this.#granted,
      ended: this.#ended,
    };
  }

  #answerWithinBudget(answer: CommandAnswer | CoreError | undefined): CommandAnswer | CoreError | undefined {
    const isTooLarge = this.#budget.isExceeded && !(answer instanceof CoreError);
    return isTooLarge ? new CoreError("answerTooLargeDone") : answer;
  }

  /** Reads the present content, even if commands are applied meanwhile. */
  read(request: RangeRequest, answerBytes = Infinity): Steps<RangeResponse> {
    const isOneKey = request.rangeEnd.length === 0;
    const view = isOneKey ? this.revisions : this.revisions.view();
    const budget = new AnswerBudget(answerBytes);
    return withinBudget(readRange(view, request, budget), budget);
  }

  /** Executes a read-only transaction (`isReadOnly`) in the same way. */
  readTxn(request: TxnRequest, answerBytes = Infinity): Steps<TxnResponse> {
    const budget = new AnswerBudget(answerBytes);
    return withinBudget(readTxn(this.revisions.view(), request, budget), budget);
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
    // A leader's own proposals have no proposer: they act for the core, not for a client.
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
        // The leader of that term found them expired. A later leader may have granted more time since. During
        // a corrupt alarm keys stay, and the leader proposes the expiry again afterwards.
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

  /** Approximate memory of the state, bytes. */
  get bytes(): number {
    return this.revisions.bytes + this.leases.bytes + this.auth.bytes;
  }

  /**
   * Turns the state into that of a new cluster. Every lease gets its full time again, since the former
   * cluster may have acknowledged later refreshes that are not in this state.
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
      // A removed member needs no space, and its content no longer matters.
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
    return new Write(this.revisions, this.leases, this.#budget, before);
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
   * Every server finds the same id. Ids are not reused, since proposers' numbers are not: otherwise the
   * holder of an ended lease could refresh its successor.
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
   * Ends each lease in a revision of its own, as etcd does; leaders of earlier versions ended all in one
   * revision. None of these revisions can be read before the last. The changes are published together: a
   * watch that resumed from one of these revisions, or got it as progress, would miss changes or get them
   * twice.
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
   * Returns the lease that the leader meant. A client may reuse an id after revoking its lease: what the
   * leader found about the former lease then does not apply.
   */
  #meant(id: bigint, seen: bigint | undefined): LeaseState | undefined {
    const lease = this.leases.get(id);
    return lease === undefined || (seen !== undefined && lease.grantedIndex > Number(seen))
      ? undefined
      : lease;
  }

  /** Deletes all keys of a lease in one revision; without keys there is no revision. */
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

function* withinBudget<Answer>(steps: Steps<Answer>, budget: AnswerBudget): Steps<Answer> {
  const answer = yield* steps;
  if (budget.isExceeded) throw new CoreError("answerTooLarge");
  return answer;
}
