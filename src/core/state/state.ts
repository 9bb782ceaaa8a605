import { faults } from "#core-faults";
import { create } from "@bufbuild/protobuf";
import { AlarmType, type AlarmResponse, AlarmResponseSchema } from "../gen/etcd/cluster_pb.js";
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
} from "../gen/etcd/rpc_pb.js";
import type { Command, SpaceAlarm } from "../gen/leasehold/command_pb.js";
import { needsRoom } from "./check.js";
import { CoreError } from "./errors.js";
import { Leases, ttlSecondsMax } from "./leases.js";
import { readRange } from "./range.js";
import { Revisions, type Version } from "./revisions.js";
import { deleteKeys, putKey, runTxn } from "./txn.js";
import { Write } from "./write.js";

/** What a command answers, without a header. */
export type CommandAnswer =
  | PutResponse
  | DeleteRangeResponse
  | TxnResponse
  | CompactionResponse
  | LeaseGrantResponse
  | LeaseRevokeResponse
  | AlarmResponse;

export interface Applied {
  /** Absent for what nobody waits for. */
  readonly answer: CommandAnswer | CoreError | undefined;
  /** The revision after it. */
  readonly revision: number;
  /** What it changed, in order: all of one revision. */
  readonly changes: readonly Version[];
  /** Leases that came into being, and such that ended. */
  readonly granted: readonly bigint[];
  readonly ended: readonly bigint[];
}

/**
 * The state machine of the core: keys with their past, and leases. The same commands in the same order make the same
 * state on every server; it knows no time.
 */
export class CoreState {
  readonly revisions = new Revisions();
  readonly leases = new Leases();
  /** Which cluster this is; 0 until its first command. */
  cluster = 0n;
  /** Milliseconds that the cluster has been led, as last replicated. */
  clusterMs = 0;
  /** Members that have more than they can hold: until they are put out, nothing is taken that needs more room. */
  readonly spaceAlarms = new Set<bigint>();
  #write = new Write(this.revisions, this.leases);
  #granted: bigint[] = [];
  #ended: bigint[] = [];

  /** `term` is that of the command's entry. A command that is refused changes nothing. */
  apply(command: Command, term: number): Applied {
    this.#write = new Write(this.revisions, this.leases);
    this.#granted = [];
    this.#ended = [];
    const answer = this.#answer(command, term);
    return {
      answer,
      revision: this.revisions.current,
      changes: this.#write.changes,
      granted: this.#granted,
      ended: this.#ended,
    };
  }

  read(request: RangeRequest): RangeResponse {
    return readRange(this.revisions, request);
  }

  /** Of a transaction that changes nothing (`isReadOnly`). */
  readTxn(request: TxnRequest): TxnResponse {
    return runTxn(new Write(this.revisions, this.leases), request);
  }

  #answer(command: Command, term: number): Applied["answer"] {
    try {
      return this.#carryOut(command, term);
    } catch (error) {
      if (error instanceof CoreError) return error;
      throw error;
    }
  }

  #carryOut({ body, request }: Command, term: number): CommandAnswer | undefined {
    if (this.spaceAlarms.size > 0 && needsRoom(body)) throw new CoreError("noSpace");
    switch (body.case) {
      case "put":
        return putKey(this.#write, body.value);
      case "deleteRange":
        return deleteKeys(this.#write, body.value);
      case "txn":
        return runTxn(this.#write, body.value);
      case "compact":
        this.#compact(body.value.revision);
        return create(CompactionResponseSchema);
      case "leaseGrant":
        return this.#grant(body.value.ID, body.value.TTL);
      case "registerLease":
        return this.#grant(this.#freeId(request), body.value.ttl, body.value.name);
      case "leaseRevoke":
        this.#end([body.value.ID]);
        return create(LeaseRevokeResponseSchema);
      case "leaseExpire":
        // Whoever led then found them over; a later leader may have promised more time since.
        if (body.value.term === BigInt(term))
          this.#end(body.value.ids.filter((id) => this.leases.get(id) !== undefined));
        return undefined;
      case "clusterTime":
        this.#keepTime(body.value);
        return undefined;
      case "spaceAlarm":
        return this.#alarm(body.value);
      case "bootstrap":
        if (this.cluster === 0n) this.cluster = body.value.cluster;
        return undefined;
      default:
        return undefined;
    }
  }

  /** What the state takes in memory, about. */
  get bytes(): number {
    return this.revisions.bytes + this.leases.bytes;
  }

  #alarm({ member, raised }: SpaceAlarm): AlarmResponse {
    const isNew = raised ? !this.spaceAlarms.has(member) : this.spaceAlarms.delete(member);
    if (raised) this.spaceAlarms.add(member);
    return alarmResponse(isNew ? [member] : []);
  }

  #compact(revision: bigint): void {
    if (revision > BigInt(this.revisions.current)) throw new CoreError("futureRevision");
    if (Number(revision) <= this.revisions.compacted) throw new CoreError("compacted");
    this.revisions.compact(Number(revision));
  }

  #grant(id: bigint, ttl: bigint, name?: string): LeaseGrantResponse {
    if (ttl > ttlSecondsMax) throw new CoreError("leaseTtlTooLarge");
    const lease = this.leases.grant(id, Number(ttl), name);
    this.#granted.push(id);
    return create(LeaseGrantResponseSchema, { ID: lease.id, TTL: BigInt(lease.ttlSeconds) });
  }

  /**
   * Every server finds the same. No id is used again, as the proposers' numbers are not: else who held a lease that has
   * ended could refresh its successor.
   */
  #freeId(number: bigint): bigint {
    let id = BigInt.asUintN(62, number) + 1n;
    while (this.leases.get(id) !== undefined) id += 1n;
    return id;
  }

  /** All keys of all of them go in one revision; none if there are no keys. */
  #end(ids: readonly bigint[]): void {
    for (const id of ids) {
      const lease = this.leases.remove(id);
      this.#ended.push(id);
      if (faults.keysLeftBehind) continue;
      for (const key of [...lease.keys].sort()) this.#write.deleteKey(key);
    }
  }

  #keepTime({
    milliseconds,
    left,
  }: {
    milliseconds: bigint;
    left: { id: bigint; milliseconds: bigint }[];
  }): void {
    this.clusterMs = Math.max(this.clusterMs, Number(milliseconds));
    for (const { id, milliseconds: leftMs } of left) {
      const lease = this.leases.get(id);
      if (lease !== undefined) lease.leftMs = Number(leftMs);
    }
  }
}

/** As clients see them. */
export function alarmResponse(members: Iterable<bigint>): AlarmResponse {
  const alarms = Array.from(members, (memberID) => ({ memberID, alarm: AlarmType.NOSPACE }));
  return create(AlarmResponseSchema, { alarms });
}
