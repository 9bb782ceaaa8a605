import { LogLimit, type Logger } from "leasehold/runtime";
import type { Effects } from "../replica/types.js";
import type { CoreMember } from "../state/members.js";
import { idText } from "./config/identity.js";
import type { Counters } from "./metrics/counters.js";

/** A server's reports to its operator. */
export class Reports {
  readonly #logger: Logger;
  readonly #counters: Counters;
  readonly #members: () => readonly CoreMember[];
  readonly #limit = new LogLimit();
  /** As last reported; 0 for none. */
  #leader = 0n;
  #isClosing = false;

  constructor(logger: Logger, counters: Counters, members: () => readonly CoreMember[]) {
    this.#logger = logger;
    this.#counters = counters;
    this.#members = members;
  }

  info(text: string): void {
    this.#logger.info(text);
  }

  /** Warns, once in a while for each cause. While the server closes, failures are expected. */
  warn(cause: string, text: string): void {
    const line = this.#isClosing ? undefined : this.#limit.line(cause, text, performance.now());
    if (line !== undefined) this.#logger.warn(line);
  }

  leadership({ role, leader, term }: NonNullable<Effects["leadership"]>): void {
    const before = this.#leader;
    this.#leader = leader;
    if (leader === 0n) {
      if (before !== 0n) this.#logger.info(`lost its leader, ${this.nameOf(before)}, in term ${term}`);
      return;
    }
    this.#counters.leaderChanges += 1;
    this.#logger.info(
      role === "leader" ? `leads in term ${term}` : `follows ${this.nameOf(leader)} in term ${term}`,
    );
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
