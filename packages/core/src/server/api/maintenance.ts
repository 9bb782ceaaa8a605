import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import {
  DefragmentResponseSchema,
  DowngradeRequest_DowngradeAction as Downgrade,
  type DowngradeRequest,
  HashKVResponseSchema,
  type HashKVRequest,
  HashResponseSchema,
  type MoveLeaderRequest,
  MoveLeaderResponseSchema,
  type StatusResponse,
  StatusResponseSchema,
} from "leasehold/etcd/gen/etcd/cluster_pb.js";
import type { CoreHost } from "../../host/host.js";
import { allAlarms, alarmText } from "../../state/alarms.js";
import { CoreError, refusalFor } from "../../state/errors.js";
import { hashOfAll, hashAt } from "../backup/hashes.js";
import { finishInTurns } from "../accounts/turns.js";
import { statusOf, type Answer, type UnaryCall, type UnaryHandler } from "../wire/rpc/call.js";
import { deadlineOf } from "./calls/calls.js";
import type { Frozen } from "./calls/frozen.js";
import { type ClusterFacts, headerNow, type UnaryHandlers } from "./calls/header.js";

/** The etcd release whose API is served, and with which all comparisons were made. */
export const apiVersion = "3.4.23";

/** etcd's servers agree on this version: the release without its last number. */
export const clusterVersion = "3.4.0";

/** Polling interval, ms. */
const lookMs = 10;

/** Status and maintenance of this server. */
export class MaintenanceHandlers {
  readonly #host: CoreHost;
  readonly #facts: ClusterFacts;
  readonly #electionMs: number;
  readonly #frozen: Frozen;

  constructor(host: CoreHost, facts: ClusterFacts, electionMs: number, frozen: Frozen) {
    this.#host = host;
    this.#facts = facts;
    this.#electionMs = electionMs;
    this.#frozen = frozen;
  }

  handlers(): UnaryHandlers {
    return {
      Status: handler(() => Promise.resolve(this.#status())),
      Hash: handler((call) => this.#hash(call)),
      HashKV: handler((call) => this.#hashKeys(call)),
      Defragment: handler((call) => this.#defragment(call)),
      MoveLeader: handler((call) => this.#moveLeader(call)),
      Downgrade: handler((call) => Promise.reject(refusalOfDowngrade(call.request as DowngradeRequest))),
    };
  }

  #status(): StatusResponse {
    const { applied, bytes, leader, lastIndex, membership, term, ...alarmed } = this.#host.status();
    const alarms = allAlarms(alarmed).map(alarmText);
    return create(StatusResponseSchema, {
      header: headerNow(this.#host, this.#facts),
      version: apiVersion,
      dbSize: BigInt(this.#facts.diskBytes()),
      dbSizeInUse: BigInt(bytes),
      leader,
      raftIndex: BigInt(lastIndex),
      raftTerm: BigInt(term),
      raftAppliedIndex: BigInt(applied),
      errors: leader === 0n ? ["etcdserver: no leader", ...alarms] : alarms,
      // Also for a server that does not know the members yet.
      isLearner: !membership.voters.includes(this.#facts.id),
    });
  }

  #hash(call: UnaryCall): Promise<unknown> {
    return this.#frozen.use(this.#host, call, async (state) => {
      const hash = await finishInTurns(hashOfAll(state));
      return create(HashResponseSchema, { header: state.header!, hash });
    });
  }

  #hashKeys(call: UnaryCall): Promise<unknown> {
    const { revision } = call.request as HashKVRequest;
    return this.#frozen.use(this.#host, call, async (state) => {
      const hash = await finishInTurns(hashAt(state, revision));
      const compactRevision = BigInt(state.source.revisions.compacted);
      return create(HashKVResponseSchema, { header: state.header!, hash, compactRevision });
    });
  }

  /** Nothing is fragmented here: only obsolete files on disk are removed. */
  async #defragment(call: UnaryCall): Promise<unknown> {
    const { applied } = this.#host.status();
    this.#host.step({ kind: "take-snapshot" });
    await this.#until(call, () => this.#host.status().snapshotIndex >= applied, "timeout");
    return create(DefragmentResponseSchema, {
      header: { ...headerNow(this.#host, this.#facts), revision: 0n },
    });
  }

  async #moveLeader(call: UnaryCall): Promise<unknown> {
    const { targetID } = call.request as MoveLeaderRequest;
    const { leader, membership } = this.#host.status();
    if (leader !== this.#facts.id) throw new CoreError("notLeader");
    if (!membership.voters.includes(targetID)) throw new CoreError("badTransferee");
    if (targetID !== this.#facts.id) this.#host.step({ kind: "transfer", to: targetID });
    await this.#until(call, () => this.#host.status().leader === targetID, "transferTimeout");
    return create(MoveLeaderResponseSchema, {
      header: { ...headerNow(this.#host, this.#facts), revision: 0n },
    });
  }

  async #until(
    call: UnaryCall,
    isDone: () => boolean,
    failure: "timeout" | "transferTimeout",
  ): Promise<void> {
    const endMs = deadlineOf(call, this.#electionMs);
    while (!isDone()) {
      if (call.isOver || performance.now() > endMs) throw new CoreError(failure);
      await sleep(lookMs);
    }
  }
}

function handler(answer: (call: UnaryCall) => Promise<unknown>): UnaryHandler {
  return (call, callback) => void settle(answer(call), callback);
}

async function settle(answer: Promise<unknown>, callback: Answer): Promise<void> {
  let response: unknown;
  try {
    response = await answer;
  } catch (error) {
    callback(statusOf(refusalFor(error)));
    return;
  }
  callback(null, response);
}

/** There is no earlier version to return to. */
function refusalOfDowngrade({ action, version }: DowngradeRequest): CoreError {
  if (action === Downgrade.CANCEL) return new CoreError("noDowngrade");
  const isVersion = /^\d+\.\d+(\.\d+)?$/.test(version);
  return new CoreError(isVersion ? "badDowngrade" : "badDowngradeVersion");
}
