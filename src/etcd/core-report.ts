/** What one server of a core says of itself, or why it does not. */
export type ServerReport =
  | { readonly address: string; readonly reachable: false; readonly reason: string }
  | {
      readonly address: string;
      readonly reachable: true;
      /** Hexadecimal, as etcd's tools show it. */
      readonly id: string;
      readonly name: string;
      readonly version: string;
      readonly isLeader: boolean;
      /** The leader it knows; empty when it knows none. */
      readonly leader: string;
      readonly term: bigint;
      /** How far its log reaches, and how far it has been carried out. */
      readonly logIndex: bigint;
      readonly appliedIndex: bigint;
      readonly dataBytes: bigint;
      readonly roundTripMs: number;
    };

/** The servers of one core. */
export interface CoreReport {
  /** Those that were asked for, in that order, and then those that they named. */
  readonly servers: readonly ServerReport[];
  /** So many servers vote, as one of them says; as many as were asked for, if none answers. */
  readonly size: number;
}
