/**
 * Messages between proposers and acceptors (section 3.4 of `docs/internals/flease-rounds.md`).
 *
 * One flat, reusable record serves for every kind: the codec fills it in place and the state machines read
 * it, so that the hot path allocates nothing. To keep a message beyond the call that passed it, copy it
 * (`copyMessage`).
 */

/** Comments and pages call these by their names in section 3.4: READ, WRITE, ACQ, REL and so on. */
export const Kind = {
  /** Requests of a proposer. */
  read: 1,
  write: 2,
  acquire: 3,
  release: 4,
  query: 5,
  /** Replies of an acceptor. */
  promise: 6,
  ack: 7,
  nack: 8,
  state: 9,
  /** Between acceptors and waiters, outside the protocol: a lost or forged one costs time, never safety. */
  /** From an acceptor to the first waiter: the resource was released. */
  hint: 10,
  /** From a participant that no longer waits: notify the next waiter. */
  pass: 11,
} as const;
export type Kind = (typeof Kind)[keyof typeof Kind];

/** Why an acceptor refused. */
export const Refusal = {
  none: 0,
  /** A live lease of another owner blocks the request (net G). */
  held: 1,
  /** A higher ballot was promised (net B). */
  promised: 2,
  /** A newer write of the same owner has been accepted. */
  stale: 3,
  /** The ballot or the lease exceeds what this acceptor's clock and settings allow. */
  outOfBounds: 4,
  /** The message belongs to another view of the membership. */
  otherView: 5,
  /** The acceptor has reached its limit of resources, or this owner's share of it. */
  full: 6,
  /** The requester's lease was broken: it is refused this resource from now on (3.13). */
  barred: 7,
  /** The acceptor is overloaded, and serves requests for held leases first. */
  busy: 8,
} as const;
export type Refusal = (typeof Refusal)[keyof typeof Refusal];

/** State of the lease that an acceptor keeps. */
export const LeaseState = {
  none: 0,
  /** Unfinished: its owner may still rely on it. */
  live: 1,
  /** Over by the acceptor's own two clocks. */
  over: 2,
  released: 3,
} as const;
export type LeaseState = (typeof LeaseState)[keyof typeof LeaseState];

export class Message {
  kind: Kind = Kind.read;
  /** Stamp of the membership view that the sender is in. */
  view = 0;
  /** The proposer's handle for its instance, echoed by the acceptor. Unsigned 32 bits. */
  instance = 0;
  /** Requests only. Empty in replies, which are matched by `instance`. */
  resource = "";
  /** Requests: owner of the ballot, which is the sender. Empty in replies, which go to the owner only. */
  owner = "";
  /** Ballot number N. */
  number = 0;
  /** Position s of the write within its ballot. */
  sequence = 0;
  /**
   * read, acquire: the sender will wait, and wants to be notified of a release. release: the sender withdraws
   * a write and keeps waiting.
   */
  waiting = false;
  /**
   * read, write: this participant holds the lease and renews it, so its link sends the message first. Not
   * transmitted: an acceptor judges by its own entry.
   */
  renewing = false;
  /** write, acquire: the lease's end on the wall clock, in ms. */
  until = 0;
  /** write, acquire: the lease's length D, in ms. */
  duration = 0;
  /** write: the tenure's fencing token, for queries; an acquire's token is its number. */
  token = 0;
  /** nack: why. */
  refusal: Refusal = Refusal.none;
  /** nack, when the acceptor is full: the name with the most entries. */
  fullBy = "";
  /**
   * nack, when the lease is held and the proposer waits: how many waiters are ahead of it; `notListed` if the
   * list is full.
   */
  ahead = 0;
  /** nack, state: the number the acceptor has promised. */
  promised = 0;
  /**
   * promise, nack, state: the lease the acceptor keeps. The fields below count only when this is not `none`.
   */
  leaseState: LeaseState = LeaseState.none;
  leaseOwner = "";
  leaseNumber = 0;
  leaseSequence = 0;
  leaseExpiresWallMs = 0;
  leaseToken = 0;
}

/** The value of `ahead` for a waiter that is not on the acceptor's list. */
export const notListed = 0xffff;

/**
 * Messages that only members are sent: an acceptor handles them, except PASS, which goes to its list of
 * waiters.
 */
export function isRequest(kind: Kind): boolean {
  return kind <= Kind.query || kind === Kind.pass;
}

export function copyMessage(from: Message, to: Message = new Message()): Message {
  return Object.assign(to, from);
}
