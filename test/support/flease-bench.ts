import { Acceptor } from "../../packages/leasehold/src/flease/protocol/acceptor.js";
import { numberAt } from "../../packages/leasehold/src/flease/protocol/ballot.js";
import type { Reading } from "../../packages/leasehold/src/flease/protocol/clock.js";
import {
  Kind,
  LeaseState,
  Message,
  Refusal,
  copyMessage,
} from "../../packages/leasehold/src/flease/protocol/message.js";
import { Proposer } from "../../packages/leasehold/src/flease/protocol/proposer.js";
import type { ProposerSink } from "../../packages/leasehold/src/flease/protocol/proposer-ports.js";
import { fleaseSettings } from "../../packages/leasehold/src/flease/protocol/settings.js";
import type {
  FleaseSettings,
  FleaseSettingsInput,
} from "../../packages/leasehold/src/flease/protocol/settings.js";
import type { Instance } from "../../packages/leasehold/src/flease/protocol/instance.js";

/**
 * Helpers for the tests of acceptors and proposers. Times are in ms since `baseMs`, and clocks agree unless a
 * test sets them apart.
 */
export const baseMs = Date.UTC(2030, 0, 1);

/** ε = 10 ms, leases of up to 1 s, exact steady clocks. */
export function benchSettings(more: Partial<FleaseSettingsInput> = {}): FleaseSettings {
  return fleaseSettings({
    members: ["a", "b", "c"],
    maxClockSkewMs: 10,
    clockRateError: 0,
    ttlMaxMs: 1_000,
    rpcTimeoutMs: 100,
    ...more,
  });
}

/** A reading at `ms`. `apart` sets single clocks apart, in the same unit. */
export function at(ms: number, apart: Partial<Reading> = {}): Reading {
  const wall = apart.wall ?? ms;
  return {
    mono: baseMs + (apart.mono ?? ms),
    wall: baseMs + wall,
    lo: baseMs + (apart.lo ?? wall),
    hi: baseMs + (apart.hi ?? wall),
    clocksDisagree: apart.clocksDisagree ?? false,
  };
}

/** The first ballot number of millisecond `ms`. */
export const ballot = (ms: number): number => numberAt(baseMs + ms);

export function message(kind: Kind, fields: Partial<Message> = {}): Message {
  const filled = new Message();
  return Object.assign(filled, { kind, view: 1, instance: 0, resource: "r" }, fields);
}

export const readOf = (owner: string, ms: number): Message =>
  message(Kind.read, { owner, number: ballot(ms) });

export function writeOf(owner: string, ms: number, sequence: number, until: number, duration = 500): Message {
  return message(Kind.write, { owner, number: ballot(ms), sequence, until: baseMs + until, duration });
}

export const acquireOf = (owner: string, ms: number, until: number, duration = 500): Message => ({
  ...writeOf(owner, ms, 0, until, duration),
  kind: Kind.acquire,
});

export const releaseOf = (owner: string, ms: number, sequence: number): Message =>
  message(Kind.release, { owner, number: ballot(ms), sequence });

/** Hands a request to an acceptor. Returns its answer, or `undefined` if it is silent. */
export function ask(acceptor: Acceptor, request: Message, now: Reading): Message | undefined {
  const reply = new Message();
  return acceptor.receive(request, now, reply) ? reply : undefined;
}

/**
 * An answer in one word: `promise`, `ack`, `state`, or the reason of a refusal; `silence` without an answer.
 */
export function wordOf(reply: Message | undefined): string {
  if (reply === undefined) return "silence";
  const table: Record<string, number> = reply.kind === Kind.nack ? Refusal : Kind;
  const value: number = reply.kind === Kind.nack ? reply.refusal : reply.kind;
  return Object.entries(table).find(([, each]) => each === value)![0];
}

/** An acceptor that is past its recovery wait at time 0. */
export function readyAcceptor(settings: FleaseSettings = benchSettings()): Acceptor {
  const acceptor = new Acceptor(settings, at(-settings.waitWallMs - 100));
  acceptor.wake(at(-1));
  return acceptor;
}

/** One broadcast of a proposer. */
export interface Sent {
  readonly message: Message;
  readonly to: number[];
}

/** A proposer with a sink that records everything. */
export class ProposerBench {
  readonly proposer: Proposer;
  readonly settings: FleaseSettings;
  /** Members that aren't connected. */
  readonly gone = new Set<number>();
  readonly sent: Sent[] = [];
  /** Outcomes in order: `acquired`, `refused q`, `failed no-quorum`, `failed full by q`, `renewed`, `not renewed`, `lapsed expired`. */
  readonly events: string[] = [];
  /** Delays given with refusals, in ms. */
  readonly retriesMs: number[] = [];
  instance: Instance | undefined;

  constructor(owner = "p.1", settings: FleaseSettings = benchSettings(), seed = 1) {
    this.settings = settings;
    const sink: ProposerSink = {
      send: (to, out) => {
        if (to === 0) this.sent.push({ message: copyMessage(out), to: [] });
        this.sent.at(-1)!.to.push(to);
      },
      reaches: (to) => !this.gone.has(to),
      acquired: () => this.events.push("acquired"),
      refused: (_slot, holder, retryInMs) => {
        this.events.push(`refused ${holder}`);
        this.retriesMs.push(retryInMs);
      },
      failed: (_slot, why, fullBy) =>
        this.events.push(`failed ${why}${fullBy === "" ? "" : ` by ${fullBy}`}`),
      renewed: (_slot, longer) => this.events.push(longer ? "renewed" : "not renewed"),
      lapsed: (_slot, why) => this.events.push(`lapsed ${why}`),
    };
    this.proposer = new Proposer(settings, owner, seed, sink, sink);
  }

  /** The newest broadcast. */
  get last(): Message {
    return this.sent.at(-1)!.message;
  }

  /** The kinds of all messages sent so far. */
  get kinds(): string[] {
    return this.sent.map(
      ({ message: { kind } }) => Object.entries(Kind).find(([, each]) => each === kind)![0],
    );
  }

  begin(ms: number, fast: boolean, ttlMs = 500, giveUpInMs = 10_000): Instance {
    this.instance = this.proposer.acquire("r", ttlMs, giveUpInMs, fast, at(ms));
    return this.instance;
  }

  /** Acceptor `from` answers `request` (by default the newest broadcast). */
  reply(from: number, kind: Kind, ms: number, fields: Partial<Message> = {}, request = this.last): void {
    const { view, instance, number, sequence } = request;
    this.proposer.receive(from, message(kind, { view, instance, number, sequence, ...fields }), at(ms));
  }

  ack(from: number, ms: number, request = this.last): void {
    this.reply(from, Kind.ack, ms, {}, request);
  }

  promise(from: number, ms: number, fields: Partial<Message> = {}): void {
    this.reply(from, Kind.promise, ms, fields);
  }

  nackPromised(from: number, ms: number, promisedMs: number, request = this.last): void {
    this.reply(from, Kind.nack, ms, { refusal: Refusal.promised, promised: ballot(promisedMs) }, request);
  }

  nackHeld(from: number, ms: number, owner: string, until: number, ahead = 0): void {
    this.reply(from, Kind.nack, ms, {
      refusal: Refusal.held,
      ahead,
      ...leaseOf(owner, LeaseState.live, until),
    });
  }

  /** Acquires in one round trip with the acceptors 0 and 1. */
  hold(ms: number, ttlMs = 500): Instance {
    const instance = this.begin(ms, true, ttlMs);
    this.ack(0, ms);
    this.ack(1, ms);
    return instance;
  }
}

/** The fields of an answer that describe a lease. */
export function leaseOf(owner: string, state: LeaseState, until: number, numberMs = 0): Partial<Message> {
  return {
    leaseState: state,
    leaseOwner: owner,
    leaseNumber: ballot(numberMs),
    leaseExpiresWallMs: baseMs + until,
  };
}
