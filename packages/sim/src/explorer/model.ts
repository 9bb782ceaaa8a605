/**
 * A protocol, as the explorer sees it. Acceptors and proposers are values: every method returns a changed
 * copy and leaves its argument alone, so that a state reached by many paths is kept, and expanded, only once.
 *
 * Times are whole ticks. `at` is the reading of the acting process's clock. At each step it may be any value
 * from the true time to the true time plus the largest difference of two clocks. That allows more than clocks
 * that drift within the bound could do, and the state needs one number instead of one for each process.
 */
export interface Model<Acceptor, Proposer, Request, Reply> {
  readonly proposers: number;
  startAcceptor(at: number): Acceptor;
  /** An acceptor that started so long ago that its recovery wait is over. */
  readyAcceptor(): Acceptor;
  startProposer(index: number): Proposer;

  /** Two things with one key are the same. */
  keyOfAcceptor(acceptor: Acceptor): string;
  keyOfProposer(proposer: Proposer): string;
  keyOfRequest(request: Request): string;
  keyOfReply(reply: Reply): string;

  /** An acceptor handles a request. No reply: silence. */
  handle(acceptor: Acceptor, request: Request, at: number): Handled<Acceptor, Reply>;
  /** A proposer handles the reply of the acceptor with index `from`. */
  receive(proposer: Proposer, from: number, reply: Reply, at: number): Stepped<Proposer, Request>;
  /** The proposer that sent a request and gets its reply. */
  senderOf(request: Request): number;
  isRefusal(reply: Reply): boolean;
  /** False if this reply, however late, can no longer have any effect: the explorer then forgets it. */
  matters(proposer: Proposer, from: number, reply: Reply): boolean;

  /** The spontaneous moves of an acceptor; `undefined` when a move is impossible now. */
  readonly acceptorMoves: readonly Move<Acceptor, Acceptor>[];
  readonly proposerMoves: readonly Move<Proposer, Stepped<Proposer, Request>>[];

  /** The same proposer in a world in which acceptor `i` is called `order[i]`. */
  renamed(proposer: Proposer, order: readonly number[]): Proposer;

  /** The hold that a proposer may rely on if its clock shows `at`. */
  holdOf(proposer: Proposer, at: number): Hold | undefined;
  /** I4: whether this acceptor blocks all other proposers for as long as the hold may last. */
  guards(acceptor: Acceptor, hold: Hold): boolean;
  /** I12: whether this request releases the hold. */
  releases(request: Request, hold: Hold): boolean;

  describeRequest(request: Request): string;
  describeReply(reply: Reply): string;
}

export interface Handled<Acceptor, Reply> {
  readonly after: Acceptor;
  readonly reply: Reply | undefined;
}

export interface Stepped<Proposer, Request> {
  readonly after: Proposer;
  /** Requests to all acceptors. */
  readonly sent: readonly Request[];
  /** The token of the tenure that has begun. */
  readonly began: number | undefined;
}

export interface Move<Who, Result> {
  readonly name: string;
  /** Moves of one kind share a bound: for each proposer, or for all acceptors together. */
  readonly kind: BoundedMove | undefined;
  apply(who: Who, at: number): Result | undefined;
}

/** The bounded moves, besides time. `crash` belongs to the explorer itself. */
export const boundedMoves = ["crash", "bar", "discard", "acquire", "renew", "restart"] as const;
export type BoundedMove = (typeof boundedMoves)[number];

export interface Hold {
  readonly owner: string;
  readonly until: number;
  readonly token: number;
  readonly number: number;
  readonly sequence: number;
}
