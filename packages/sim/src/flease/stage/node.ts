import type { FleasePeer } from "leasehold/inner/flease/peer.js";
import type { FleaseProvider } from "leasehold/inner/flease/provider.js";
import type { FleaseRunner } from "leasehold/inner/flease/runner.js";
import type { Reading } from "leasehold/inner/flease/protocol/clock.js";
import type { AttemptFailure } from "leasehold/inner/flease/protocol/proposer-ports.js";
import type { Membership } from "leasehold/inner/flease/views/view.js";
import type { Instance } from "leasehold/inner/flease/protocol/instance.js";
import type { SimClock } from "../../kit/clocks.js";
import type { Task } from "../../kit/events.js";

/** The sleep of a machine, as others see it. */
export interface MachineSleep {
  /** The machine is suspended: nothing happens there, and its steady clock stands still. */
  readonly isOn: boolean;
  /** The clocks have moved in a way that no reading can detect, which the assumptions exclude. */
  readonly deceives: boolean;
  /** Whether a lease of the node is valid by its clocks at this moment. */
  reliesOn(until: number, end: number): boolean;
}

/** A node, as checkers and indexes see it. They change nothing. */
export interface NodeView {
  readonly index: number;
  readonly name: string;
  readonly isMember: boolean;
  readonly clock: SimClock;
  /** Undefined while the node is down. */
  readonly peer: FleasePeer | undefined;
  readonly owner: string;
  readonly incarnation: number;
  readonly sleep: MachineSleep;
  /** The end of a pause: the node handles nothing, and its clocks run on. */
  readonly pausedUntilMs: number;
  readonly paused: boolean;
  /** Present when its programs use the waist. */
  readonly waist: { readonly provider: FleaseProvider } | undefined;
  /** The clock as an observer sees it, without disturbing it. One reused record. */
  look(): Reading;
}

/** A node, as its programs see it. */
export interface ProgramNode extends NodeView {
  readonly side: NodeSide | undefined;
  /** The product's; undefined while the node is down. */
  readonly runner: FleaseRunner | undefined;
  /** One event of this node. `resource` is the resource that it may have affected; undefined means any. */
  step(resource: string | undefined, body: (now: Reading) => void): void;
  /** Puts off an event while the node is stopped. True when it has. */
  deferred(event: Task): boolean;
  /** Reports the outcomes of an instance to a program. */
  assign(instance: Instance, program: InstanceProgram): void;
  /** Sends a note to another node beside the protocol. */
  whisper(to: number, toIncarnation: number, note: string): void;
  /** The process has exited cleanly. */
  leave(): void;
}

/** A node's admin RPCs and answers. */
export interface NodeSide {
  ask(member: number, method: string, params: object, timeoutMs: number): Promise<unknown>;
  /** A node has died or continues as another owner: connections to its former life are gone. */
  disconnected(node: NodeView): void;
  close(): void;
}

/** The callbacks of a program that drives a proposer itself, called in the middle of a step of its node. */
export interface InstanceProgram {
  readonly resource: string;
  begin(): void;
  end(): void;
  /** False when nobody here waits for the resource. */
  hinted(): boolean;
  acquired(instance: Instance, fast: boolean): void;
  refused(retryInMs: number): void;
  failed(why: AttemptFailure): void;
  renewed(longer: boolean): void;
  lapsed(): void;
}

/** The machine of a node, as what goes wrong with it sees it. */
export interface MachineNode extends NodeView {
  pausedUntilMs: number;
  readonly sleep: MachineSleep & {
    isOn: boolean;
    begin(forMs: number): void;
    clocksSeemToAgree(): boolean;
  };
  readonly waist: { readonly provider: FleaseProvider; leave(): void } | undefined;
  /** The greatest reading its wall clock ever gave (see A-wall on starts). */
  readonly greatestWall: number;
  start(): void;
  crash(): void;
  pause(forMs: number): void;
  /** Loses the persisted view of a node that is down. */
  loseView(): void;
  /** Its operator changes the members. */
  changeMembers(next: Membership): void;
  /** Sets the wake-up to when the peer wants it, by the steady clock as it runs now. */
  rearm(): void;
}
