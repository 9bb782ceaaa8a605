import type { Lease } from "leasehold/inner/lease/types.js";
import type { Entry } from "leasehold/inner/flease/protocol/entries/entry.js";
import type { Reading } from "leasehold/inner/flease/protocol/clock.js";
import type { Message } from "leasehold/inner/flease/protocol/message.js";
import type { FleaseSettings } from "leasehold/inner/flease/protocol/settings.js";
import type { Instance } from "leasehold/inner/flease/protocol/instance.js";
import type { ClockAssumptions } from "../../kit/clocks.js";
import type { NodeView } from "./node.js";
import type { Report } from "../../kit/violation.js";
import type { Invariant } from "./invariants.js";

/** The world, as observers see it. */
export interface WorldView {
  readonly nowMs: number;
  readonly settings: FleaseSettings;
  readonly assumptions: ClockAssumptions;
  readonly nodes: readonly NodeView[];
  /** Nodes with an acceptor, by member index. */
  readonly members: readonly NodeView[];
  readonly writes: WriteLookup;
  readonly tenures: TenureLookup;
  readonly claims: ClaimLookup;
}

/** A lease of one program, and what it has seen of it since. */
export interface Claim {
  readonly node: NodeView;
  readonly incarnation: number;
  readonly resource: string;
  readonly token: number;
  readonly lease: Lease;
  /** The lease is a reader's: it does not exclude other shared ones. */
  readonly shared: boolean;
  readonly beganMs: number;
  /** The last time at which its program saw it held. */
  heldMs: number;
  /** When its program stopped using the resource or saw that it must stop; undefined before that. */
  endedMs: number | undefined;
}

/** One look of a program at its lease. */
export interface Look {
  readonly claim: Claim;
  readonly remainingMs: number;
  /** Whether the lease's signal says that it is over. */
  readonly aborted: boolean;
}

/** A call that waits for a resource, on the waist of a process that is alive. */
export interface Waiter {
  readonly node: NodeView;
  readonly resource: string;
  readonly sinceMs: number;
}

/** Requests of a lease layer to its provider. */
export type WaistRequest = "attempt" | "renew" | "release";

export type FleaseReport = Report<Invariant>;

/** A write as it was sent, with its end on its owner's steady clock. */
export interface SentWrite {
  readonly until: number;
  readonly duration: number;
  readonly end: number;
  /** In one round trip, without a READ before it. */
  readonly fast: boolean;
}

export interface WriteLookup {
  find(owner: string, number: number, sequence: number): SentWrite | undefined;
}

/** The claims of programs on the lease layer. */
export interface ClaimLookup {
  /** Whether a program of this node uses the resource. */
  has(node: NodeView, resource: string): boolean;
  waiting(): Iterable<Waiter>;
}

export interface TenureLookup {
  /** The last tenure that this node, in its present life, has begun of the resource. */
  of(node: NodeView, resource: string): Tenure | undefined;
}

/** One request handled by one acceptor. The record is reused, so it is valid only during the call. */
export interface AcceptorStep {
  node: NodeView;
  request: Message;
  /** The acceptor's clock at the request's receipt. */
  now: Reading;
  /** The acceptor's former entry of the resource; `present` is false if it had none. */
  before: Entry & { present: boolean };
  after: Readonly<Entry> | undefined;
  /** The answer; undefined when there was none. */
  reply: Message | undefined;
}

/** One holding, as reported to the program. */
export interface Tenure {
  readonly node: NodeView;
  readonly owner: string;
  readonly resource: string;
  readonly token: number;
  readonly beganMs: number;
  /** Begun in one round trip. */
  readonly fast: boolean;
  /** Its end; undefined while it lasts. */
  ended: "released" | "lapsed" | "crashed" | undefined;
  endedMs: number;
  /** The end of its last lease on its owner's wall clock. */
  until: number;
}

/** A hold that a node has recorded, and whether it is valid by that node's clocks at this instant. */
export interface Hold {
  node: NodeView;
  instance: Instance;
  now: Reading;
  valid: boolean;
}

/** The events of a run. Each checker and counter handles some of them. */
export interface Observer {
  /** A message leaves a node. */
  sent?(from: NodeView, to: number, message: Message): void;
  /** An acceptor has handled a request. */
  handled?(step: AcceptorStep): void;
  /** A tenure has begun; `earlier` is the one before it, of the same resource. */
  tenureBegan?(tenure: Tenure, earlier: Tenure | undefined): void;
  /** A node was asked to release, or an acquisition ended without a hold: its ballots are closed. */
  closed?(node: NodeView, resource: string): void;
  /**
   * All holds of the resource, after an event that concerned it. `actor` is the node of the event; its clock has
   * been read at this instant.
   */
  looked?(resource: string, holds: readonly Hold[], actor: NodeView | undefined): void;
  /** The clocks of a node have been read in one of its own events. */
  clockRead?(node: NodeView): void;
  /** A node is about to lose its memory. */
  crashing?(node: NodeView): void;
  /** A node has started with an empty memory. */
  started?(node: NodeView): void;
  /** A node continues as another owner. */
  renamed?(node: NodeView): void;
  /** A node is in another view. */
  viewEntered?(node: NodeView): void;
  /** An acceptor's recovery wait is over. */
  readied?(node: NodeView): void;
  /** A program on the waist got a lease. */
  claimBegan?(claim: Claim): void;
  /** A program on the waist has looked at its lease. */
  claimLooked?(look: Look): void;
  /** A waist asks its provider. `life` stands for one life of its node. */
  asks?(life: string, resource: string, request: WaistRequest): void;
  /** The provider has answered; `granted` when the waist has the resource now and must give it back. */
  answered?(life: string, resource: string, granted: boolean): void;
  /** A leader's work begins, or has settled. `campaign` stands for one call of `lead`. */
  leads?(campaign: object, claim: Claim, begins: boolean): void;
  /** The end of a run, long after the last fault. */
  calmEnded?(): void;
}

type Hook = keyof Observer;

/** Hands each event to the observers that care. */
export class Observers {
  readonly sent: NonNullable<Observer["sent"]>[];
  readonly handled: NonNullable<Observer["handled"]>[];
  readonly tenureBegan: NonNullable<Observer["tenureBegan"]>[];
  readonly closed: NonNullable<Observer["closed"]>[];
  readonly looked: NonNullable<Observer["looked"]>[];
  readonly clockRead: NonNullable<Observer["clockRead"]>[];
  readonly crashing: NonNullable<Observer["crashing"]>[];
  readonly started: NonNullable<Observer["started"]>[];
  readonly renamed: NonNullable<Observer["renamed"]>[];
  readonly viewEntered: NonNullable<Observer["viewEntered"]>[];
  readonly readied: NonNullable<Observer["readied"]>[];
  readonly claimBegan: NonNullable<Observer["claimBegan"]>[];
  readonly claimLooked: NonNullable<Observer["claimLooked"]>[];
  readonly asks: NonNullable<Observer["asks"]>[];
  readonly answered: NonNullable<Observer["answered"]>[];
  readonly leads: NonNullable<Observer["leads"]>[];
  readonly calmEnded: NonNullable<Observer["calmEnded"]>[];

  constructor(observers: readonly Observer[]) {
    this.sent = hooks(observers, "sent");
    this.handled = hooks(observers, "handled");
    this.tenureBegan = hooks(observers, "tenureBegan");
    this.closed = hooks(observers, "closed");
    this.looked = hooks(observers, "looked");
    this.clockRead = hooks(observers, "clockRead");
    this.crashing = hooks(observers, "crashing");
    this.started = hooks(observers, "started");
    this.renamed = hooks(observers, "renamed");
    this.viewEntered = hooks(observers, "viewEntered");
    this.readied = hooks(observers, "readied");
    this.claimBegan = hooks(observers, "claimBegan");
    this.claimLooked = hooks(observers, "claimLooked");
    this.asks = hooks(observers, "asks");
    this.answered = hooks(observers, "answered");
    this.leads = hooks(observers, "leads");
    this.calmEnded = hooks(observers, "calmEnded");
  }
}

function hooks<Name extends Hook>(observers: readonly Observer[], name: Name): NonNullable<Observer[Name]>[] {
  const found: NonNullable<Observer[Name]>[] = [];
  for (const observer of observers) {
    const hook = observer[name];
    if (hook !== undefined) found.push(hook.bind(observer) as NonNullable<Observer[Name]>);
  }
  return found;
}
