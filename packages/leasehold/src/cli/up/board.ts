import type { MemberReport } from "../../flease/tcp/types.js";
import type { ResourceHint } from "../../lease/types.js";
import { shortTime } from "../output/present.js";
import type { WorkerNews } from "./news.js";

/** An event, for the log and `-o ndjson`. */
export interface Change {
  /** System time, ms. */
  readonly atMs: number;
  readonly kind: "member" | "worker" | "acquired" | "taken-over" | "released" | "killed" | "lost" | "trouble";
  readonly text: string;
  readonly resource?: string;
  readonly holder?: string;
  readonly token?: string;
  /** The time during which no holder was at work. */
  readonly afterMs?: number;
}

export interface MemberRow {
  readonly id: string;
  readonly address: string;
  readonly state: "starting" | "recovering" | "ready" | "learner" | "clock-fault" | "twin" | "unreachable";
  /** The system time at which a recovering member will be ready. */
  readonly readyAtMs?: number;
}

export interface LeaseRow {
  readonly resource: string;
  readonly holder: string;
  readonly token: string;
  /** The system time at which the lease expires unless it is renewed. */
  readonly endsAtMs: number;
  readonly sinceMs: number;
  /** One of our workers has reported that it holds the lease. */
  readonly own: boolean;
  /** The holder's process has been killed, so the lease is no longer renewed. */
  readonly killed: boolean;
}

/** More than any screen shows; older entries are forgotten. */
const LOG_MAX = 200;
/** Two readings of "ready in" that differ by less are the same. */
const COUNTDOWN_JITTER_MS = 150;

/** How long a dead worker's name is remembered. By then its leases have expired, and no answer shows them. */
const DEAD_KEPT_MS = 60_000;

interface Death {
  readonly worker: string;
  readonly atMs: number;
}

interface Worker {
  readonly name: string;
  diedAtMs?: number;
}

/**
 * The state shown by `up`. Leases come from the cluster, so that leases acquired in other terminals are shown
 * as well; the workers' own messages explain changes.
 */
export class Board {
  readonly members = new Map<string, MemberRow>();
  readonly leases = new Map<string, LeaseRow>();
  readonly log: Change[] = [];
  /** The resource that each waiting worker waits for. */
  readonly waiting = new Map<string, string>();
  readonly #report: (change: Change) => void;
  /** Our workers, keyed by their name in the cluster; a restarted worker has a new name. */
  readonly #workers = new Map<string, Worker>();
  /** Resources whose holder died, without a successor yet. */
  readonly #orphans = new Map<string, Death>();
  /** The last token that one of our workers has released. Answers that still show it are out of date. */
  readonly #endedTokens = new Map<string, bigint>();

  /** @param report receives each change once. */
  constructor(members: readonly { id: string; address: string }[], report: (change: Change) => void) {
    this.#report = report;
    for (const member of members) this.members.set(member.id, { ...member, state: "starting" });
  }

  /** Resources that this worker holds, as far as we know. */
  heldBy(worker: string): string[] {
    return [...this.leases.values()]
      .filter((row) => row.holder === worker && !row.killed)
      .map((row) => row.resource);
  }

  observeMembers(reports: readonly MemberReport[], nowMs: number): void {
    for (const report of reports) {
      const before = this.members.get(report.id);
      if (before === undefined || (before.state === "starting" && !report.reachable)) continue;
      const after = memberRow(report, before, nowMs);
      this.members.set(report.id, after);
      if (after.state !== before.state)
        this.#add({ atMs: nowMs, kind: "member", text: memberText(after, nowMs) });
    }
  }

  observeLeases(hints: readonly ResourceHint[], nowMs: number): void {
    for (const [holder, { diedAtMs }] of this.#workers) {
      if (diedAtMs !== undefined && nowMs - diedAtMs > DEAD_KEPT_MS) this.#workers.delete(holder);
    }
    const seen = new Set<string>();
    for (const hint of hints) {
      const { resource, holder, token, remainingMs = 0 } = hint;
      if (hint.state !== "held" || holder === undefined || token === undefined) continue;
      seen.add(resource);
      this.#observeLease(resource, holder, token, nowMs + remainingMs, nowMs);
    }
    for (const row of this.leases.values()) if (!seen.has(row.resource)) this.#vanished(row, nowMs);
  }

  #observeLease(resource: string, holder: string, token: bigint, endsAtMs: number, nowMs: number): void {
    const before = this.leases.get(resource);
    // Answers may be of different ages; the token must never decrease.
    if (token <= (this.#endedTokens.get(resource) ?? -1n)) return;
    if (before !== undefined && token < BigInt(before.token)) return;
    const worker = this.#workers.get(holder);
    const isNew = before?.token !== String(token);
    const row: LeaseRow = {
      resource,
      token: String(token),
      endsAtMs,
      holder: worker?.name ?? holder,
      sinceMs: isNew ? nowMs : before.sinceMs,
      own: worker !== undefined,
      killed: worker?.diedAtMs !== undefined,
    };
    if (isNew && worker === undefined) this.#taken(row, undefined, nowMs);
    if (isNew && worker?.diedAtMs !== undefined) {
      // The worker died before it could report its lease.
      this.#orphans.set(resource, { worker: worker.name, atMs: worker.diedAtMs });
    }
    this.leases.set(resource, row);
  }

  #vanished(row: LeaseRow, nowMs: number): void {
    const { resource, holder, token } = row;
    // A worker reports its lease before the cluster's answers show it.
    if (row.own && !row.killed && nowMs < row.endsAtMs) return;
    this.leases.delete(resource);
    if (row.own) return;
    const text = `${holder} does not hold ${resource} any more`;
    this.#add({ atMs: nowMs, kind: "released", text, resource, holder, token });
  }

  observeWorker(worker: string, news: WorkerNews, ttlMs: number, nowMs: number): void {
    switch (news.type) {
      case "started":
        this.#workers.set(news.holder, { name: worker });
        break;
      case "waiting":
        this.waiting.set(worker, news.resource);
        break;
      case "acquired": {
        this.waiting.delete(worker);
        const { resource, token } = news;
        const row = { resource, holder: worker, token, endsAtMs: nowMs + ttlMs, sinceMs: nowMs };
        this.#taken(row, news.waitedMs, nowMs);
        const before = this.leases.get(resource);
        if (before === undefined || BigInt(before.token) < BigInt(token)) {
          this.leases.set(resource, { ...row, own: true, killed: false });
        }
        break;
      }
      case "released":
        this.#ended(news, worker);
        this.#add({
          atMs: nowMs,
          kind: "released",
          resource: news.resource,
          holder: worker,
          token: news.token,
          text: `${worker} released ${news.resource} after ${shortTime(news.heldMs)}`,
        });
        break;
      case "lost":
        this.#ended(news, worker);
        this.#add({
          atMs: nowMs,
          kind: "lost",
          resource: news.resource,
          holder: worker,
          token: news.token,
          text: `${worker} lost ${news.resource}: ${news.reason}`,
        });
        break;
      case "trouble":
        this.#add({ atMs: nowMs, kind: "trouble", holder: worker, text: `${worker}: ${news.message}` });
        break;
    }
  }

  #ended(news: { resource: string; token: string }, worker: string): void {
    const row = this.leases.get(news.resource);
    if (row?.token === news.token && row.holder === worker) this.leases.delete(news.resource);
    this.#endedTokens.set(news.resource, BigInt(news.token));
  }

  #taken(
    row: Pick<LeaseRow, "resource" | "holder" | "token">,
    waitedMs: number | undefined,
    nowMs: number,
  ): void {
    const { resource, holder, token } = row;
    const orphan = this.#orphans.get(resource);
    this.#orphans.delete(resource);
    const facts = { atMs: nowMs, resource, holder, token };
    if (orphan !== undefined) {
      const afterMs = nowMs - orphan.atMs;
      const text = `${holder} took over ${resource} from ${orphan.worker} after ${shortTime(afterMs)}, token ${token}`;
      this.#add({ ...facts, kind: "taken-over", afterMs, text });
      return;
    }
    const waited = waitedMs === undefined || waitedMs < 100 ? "" : ` after waiting ${shortTime(waitedMs)}`;
    this.#add({
      ...facts,
      kind: "acquired",
      text: `${holder} acquired ${resource}${waited}, token ${token}`,
    });
  }

  /** A worker has been killed, or has died by itself. */
  workerDied(worker: string, how: "killed" | "exited", nowMs: number): void {
    const held = this.heldBy(worker);
    this.waiting.delete(worker);
    for (const known of this.#workers.values()) {
      if (known.name === worker) known.diedAtMs ??= nowMs;
    }
    for (const resource of held) {
      const row = this.leases.get(resource);
      if (row !== undefined) this.leases.set(resource, { ...row, killed: true });
      this.#orphans.set(resource, { worker, atMs: nowMs });
    }
    const while_ = held.length === 0 ? "" : ` while it held ${held.join(", ")}`;
    const text =
      how === "killed" ? `${worker} was killed (SIGKILL)${while_}` : `${worker} ended by itself${while_}`;
    const [resource] = held;
    this.#add({
      atMs: nowMs,
      kind: "killed",
      holder: worker,
      text,
      ...(resource !== undefined && { resource }),
    });
  }

  note(kind: Change["kind"], text: string, nowMs: number): void {
    this.#add({ atMs: nowMs, kind, text });
  }

  #add(change: Change): void {
    this.log.push(change);
    if (this.log.length > LOG_MAX) this.log.shift();
    this.#report(change);
  }
}

function memberRow(report: MemberReport, before: MemberRow, nowMs: number): MemberRow {
  const { id, address } = before;
  if (!report.reachable) return { id, address, state: "unreachable" };
  const { state, readyInMs } = report.status;
  if (state !== "recovering") return { id, address, state };
  const readyAtMs = nowMs + readyInMs;
  const steady =
    before.readyAtMs !== undefined && Math.abs(before.readyAtMs - readyAtMs) < COUNTDOWN_JITTER_MS;
  return { id, address, state, readyAtMs: steady ? (before.readyAtMs ?? readyAtMs) : readyAtMs };
}

/** A member's state in words. */
export function memberText(member: MemberRow, nowMs: number): string {
  if (member.state !== "recovering") return `member ${member.id} is ${member.state.replace("-", " ")}`;
  const leftMs = Math.max(0, (member.readyAtMs ?? nowMs) - nowMs);
  return `member ${member.id} is recovering, ready in ${shortTime(leftMs)}`;
}
