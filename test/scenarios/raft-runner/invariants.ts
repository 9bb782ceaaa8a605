import type { Entry, MemberId, Persist, Ready } from "../../../packages/core/src/raft/types.js";
import { textOf } from "./server.js";
import type { Server } from "./server.js";

/**
 * The properties of figure 3 of the Raft paper, and the guarantee for reads. A judge that sees all servers at
 * once checks each against what the servers hand out.
 */
export class Invariants {
  readonly #leaders = new Map<number, MemberId>();
  /** The entry committed at each index, by the server that applied it first. */
  readonly #committed = new Map<number, string>();
  #committedMax = 1;
  readonly #reads = new Map<string, number>();

  /** How often a leader was certain by the clock that nobody else leads. */
  ledByClock = 0;

  get committedMax(): number {
    return this.#committedMax;
  }

  observe(server: Server, ready: Ready): void {
    const { leadership, persist, committed, reads } = ready;
    for (const entry of committed) this.#stateMachineSafety(server, entry);
    if (persist?.snapshot !== undefined) this.#sameHistory(server);
    if (leadership?.role === "leader") {
      this.#electionSafety(server, leadership.term);
      this.#leaderCompleteness(server);
    }
    for (const read of reads) this.#noStaleRead(server, read.id, read.index);
  }

  /** Election Safety: at most one leader can be elected in a given term (5.2). */
  #electionSafety(server: Server, term: number): void {
    const other = this.#leaders.get(term) ?? server.id;
    if (other !== server.id) fail("election safety", `${other} and ${server.id} lead in term ${term}`);
    this.#leaders.set(term, server.id);
  }

  /** A leader that is certain by the clock that nobody else leads is right (thesis 6.4.1). */
  leadsByClock(server: Server): void {
    if (server.act((raft) => raft.readIndexByClock()) === undefined) return;
    this.ledByClock += 1;
    const { term } = server.raft!.status();
    for (const later of this.#leaders.keys())
      if (later > term)
        fail(
          "leader lease",
          `${server.id} relies on its time in term ${term}, but term ${later} has a leader`,
        );
  }

  /**
   * Leader Append-Only: a leader never overwrites or deletes entries in its log (5.3). Called before its log
   * changes.
   */
  appendOnly(server: Server, { entries, snapshot }: Persist): void {
    const { role, term } = server.raft!.status();
    if (role !== "leader" || this.#leaders.get(term) !== server.id) return;
    const lastIndex = server.logBase.index + server.log.length;
    if (snapshot !== undefined || (entries[0]?.index ?? Infinity) <= lastIndex)
      fail("leader append-only", `${server.id} replaced some of its log`);
  }

  /** Leader Completeness: committed entries are in the logs of the leaders of all later terms (5.4). */
  #leaderCompleteness(server: Server): void {
    for (const [index, text] of this.#committed) {
      if (index <= server.logBase.index) continue;
      const entry = server.log[index - server.logBase.index - 1];
      if (entry === undefined || textOf(entry) !== text)
        fail("leader completeness", `${server.id} leads without ${index} ${text}`);
    }
  }

  /** State Machine Safety: no other server will ever apply a different entry for the same index (5.4.3). */
  #stateMachineSafety(server: Server, entry: Entry): void {
    const text = textOf(entry);
    const known = this.#committed.get(entry.index) ?? text;
    if (known !== text)
      fail("state machine safety", `${server.id} applies ${text} at ${entry.index}, which is ${known}`);
    this.#committed.set(entry.index, text);
    this.#committedMax = Math.max(this.#committedMax, entry.index);
  }

  #sameHistory(server: Server): void {
    for (const [index, text] of server.history)
      if (this.#committed.get(index) !== text)
        fail("state machine safety", `${server.id} has ${text} at ${index} from a snapshot`);
  }

  /** Log Matching: logs with an entry of the same index and term are identical up to there (5.3). */
  logMatching(servers: readonly Server[]): void {
    const [one, ...others] = servers;
    if (one === undefined) return;
    for (const other of others) {
      let agree = false;
      const last = Math.min(one.logBase.index + one.log.length, other.logBase.index + other.log.length);
      const first = Math.max(one.logBase.index, other.logBase.index) + 1;
      for (let index = last; index >= first; index -= 1) {
        const mine = one.log[index - one.logBase.index - 1]!;
        const theirs = other.log[index - other.logBase.index - 1]!;
        agree ||= mine.term === theirs.term;
        if (agree && textOf(mine) !== textOf(theirs))
          fail(
            "log matching",
            `${one.id} and ${other.id} differ at ${index}, before an entry that both have`,
          );
      }
    }
    this.logMatching(others);
  }

  /** Records a read request. The read must see whatever any client could have learned by now. */
  asked(server: Server, id: number): void {
    this.#reads.set(`${server.id}/${id}`, this.#committedMax);
  }

  #noStaleRead(server: Server, id: number, index: number): void {
    const least = this.#reads.get(`${server.id}/${id}`) ?? 0;
    if (index < least)
      fail("linearizable reads", `${server.id} reads at ${index}, but ${least} was applied before`);
  }
}

export class Violation extends Error {
  readonly property: string;

  constructor(property: string, what: string) {
    super(`${property}: ${what}`);
    this.property = property;
  }
}

function fail(property: string, what: string): never {
  throw new Violation(property, what);
}
