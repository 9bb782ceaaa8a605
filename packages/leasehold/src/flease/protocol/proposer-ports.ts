import type { Message } from "./message.js";
import type { Instance, InstanceMaker } from "./instance.js";

/** Why an attempt failed. */
export type AttemptFailure =
  | "no-quorum"
  | "contention"
  | "out-of-bounds"
  | "full"
  | "busy"
  | "cancelled"
  | "clock-fault"
  | "barred";

/** Why a tenure lapsed. `barred`: its lease was broken, so it could not be renewed. */
export type Lapse = "expired" | "clock-fault" | "barred";

/** Where a proposer's requests go. Encode or copy the message, which is reused, before returning. */
export interface RequestSink {
  /** Sends to a member, identified by its index. */
  send(to: number, message: Message): void;
  /** False when that member cannot answer, because it is not connected. */
  reaches(to: number): boolean;
}

/**
 * Carries messages to members, identified by index, and to other connected participants. What is sent to a
 * member that is not connected is lost.
 */
export interface Medium extends RequestSink {
  /**
   * Like `send`, but also to participants that are not members. False when that participant is not connected.
   */
  notify(to: number, message: Message): boolean;
}

/**
 * Callbacks for the ends of operations. They are called in the middle of a step and must not call the
 * proposer back.
 * @typeParam Made the type that `instance` makes: callbacks get no other instances
 */
export interface ProposerOutcomes<Made extends Instance = Instance> {
  /** Makes the instances of operations, which may carry more data than the proposer needs. */
  readonly instance?: InstanceMaker<Made>;
  /** A tenure has begun; its token is `instance.tokenNumber`. */
  acquired(instance: Made): void;
  /**
   * Another participant, `holder`, has the resource; trying before `retryInMs` is useless. The instance no
   * longer belongs to the caller.
   */
  refused(instance: Made, holder: string, retryInMs: number): void;
  /**
   * The attempt has failed, and any write it may have left was withdrawn. The instance no longer belongs to
   * the caller.
   * @param fullBy the account with the most entries at an acceptor that was full
   */
  failed(instance: Made, why: AttemptFailure, fullBy: string): void;
  /** A renewal has ended: the hold is either longer or unchanged. */
  renewed(instance: Made, longer: boolean): void;
  /** The tenure has lapsed. The instance belongs to the caller until it calls `release`. */
  lapsed(instance: Made, why: Lapse): void;
}

export interface ProposerSink extends RequestSink, ProposerOutcomes {}
