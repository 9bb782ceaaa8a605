import type { EventFields, EventLog, Logger } from "leasehold/runtime";
import type { Effects } from "../replica/types.js";
import type { CoreMember } from "../state/members.js";
import { idText } from "./config/identity.js";
import { eventLog, type LogEvents } from "./log-events.js";
import type { Counters } from "./metrics/counters.js";

/** A server's reports to its operator. */
export class Reports {
  readonly #events: EventLog<LogEvents>;
  readonly #counters: Counters;
  readonly #members: () => readonly CoreMember[];
  /** The leader last reported; 0 for none. */
  #leader = 0n;
  #isClosing = false;

  constructor(logger: Logger, counters: Counters, members: () => readonly CoreMember[]) {
    this.#events = eventLog(logger);
    this.#counters = counters;
    this.#members = members;
  }

  log<Id extends keyof LogEvents>(id: Id, text: string, fields: EventFields<LogEvents, Id>): void {
    this.#events.log(id, text, fields);
  }

  /**
   * Logs at most once in a while for each cause. While the server closes, failures are expected and not
   * logged.
   */
  limited<Id extends keyof LogEvents>(
    id: Id,
    cause: string,
    text: string,
    fields: EventFields<LogEvents, Id>,
  ): void {
    if (!this.#isClosing) this.#events.limited(id, cause, text, fields);
  }

  leadership({ role, leader, term }: NonNullable<Effects["leadership"]>): void {
    const before = this.#leader;
    this.#leader = leader;
    if (leader === 0n) {
      if (before === 0n) return;
      const lost = this.nameOf(before);
      this.log("leader-lost", `lost its leader, ${lost}, in term ${term}`, { leader: lost, term });
      return;
    }
    this.#counters.leaderChanges += 1;
    const [leads, name] = [role === "leader", this.nameOf(leader)];
    const text = leads ? `leads in term ${term}` : `follows ${name} in term ${term}`;
    this.log("leader-changed", text, { leader: name, term, leads });
  }

  /** The member's name, or its id while the name is unknown. */
  nameOf(member: bigint): string {
    const known = this.#members().find(({ id }) => id === member)?.name ?? "";
    return known === "" ? idText(member) : known;
  }

  close(): void {
    this.#isClosing = true;
  }
}
