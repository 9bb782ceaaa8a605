/**
 * Messages between proposers and acceptors (section 3.4 of `docs/internals/flease-rounds.md`).
 *
 * One flat, reusable record serves for every kind: the codec fills it in place and the state machines read
 * it, so that the hot path allocates nothing. A message that is kept beyond the call that handed it over must
 * be copied (`copyMessage`).
 */

/** In comments and pages READ, WRITE, ACQ, REL and so on: the names of section 3.4. */
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
  /** Between acceptors and waiters, outside the protocol: losing or forging one costs time, never safety. */
  /** An acceptor to the first who waits: the resource was released. */
  hint: 10,
  /** The answer of a participant that no longer waits: notify the next. */
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
  /** The acceptor has more to do than it can, and does first what others hold. */
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
  /** Number of the membership view that the sender is in. */
  view = 0;
  /** The proposer's handle for its instance, echoed by the acceptor. Unsigned 32 bits. */
  instance = 0;
  /** Requests; empty in replies, which are matched by `instance`. */
  resource = "";
  /** Requests: owner of the ballot, which is the sender. Empty in replies: those go to the owner alone. */
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
   * read, write: this participant holds the lease and renews it, so its link sends that before the rest. It
   * is not sent: an acceptor uses its own.
   */
  renewing = false;
  /** write, acquire: the lease's end on the wall clock, in ms. */
  until = 0;
  /** write, acquire: the lease's length D, in ms. */
  duration = 0;
  /**
   * write: the tenure's fencing token, for those who ask who holds the resource; an acquire's token is its
   * number.
   */
  token = 0;
  /** nack: why. */
  refusal: Refusal = Refusal.none;
  /** nack, when too much is kept already: the name for which the most is kept. */
  fullBy = "";
  /**
   * nack, when the lease is held and the proposer waits: how many wait before it; `notListed` if the list is
   * full.
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

/** `ahead` of one who waits and is not on the acceptor's list. */
export const notListed = 0xffff;

/** Handled by a member: by its acceptor, or a PASS by its list of waiters. Only members are sent these. */
export function isRequest(kind: Kind): boolean {
  return kind <= Kind.query || kind === Kind.pass;
}

export function copyMessage(from: Message, to: Message = new Message()): Message {
  return Object.assign(to, from);
}
