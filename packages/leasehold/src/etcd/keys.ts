import { slotMark } from "../lease/slots.js";

/** Where leases stand in the core when the address says nothing else. */
export const keyPrefixDefault = "leasehold/";

/** Leases have a level of their own, so that something else can be put beside them. */
const level = "leases/";

/** The level of the queues of fair callers. */
const linesLevel = "lines/";

/** And the members of groups that are kept as plain keys. */
const membersLevel = "members/";

/** Maps the names of resources to keys and back. */
export class Keys {
  readonly #root: string;
  readonly #lines: string;
  readonly #members: string;

  constructor(prefix: string) {
    this.#root = prefix + level;
    this.#lines = prefix + linesLevel;
    this.#members = prefix + membersLevel;
  }

  /** The key of a resource, or, of the beginning of names, what their keys begin with. */
  of(resource: string): string {
    return this.#root + resource;
  }

  /** The prefix of the keys of all callers in the queue for a resource; a number follows. */
  lineOf(resource: string): string {
    return this.#lines + resource + slotMark;
  }

  /** What the keys of a group's members begin with; a member's name follows. */
  membersOf(group: string): string {
    return `${this.#members}${group}/`;
  }

  resourceOf(key: string): string {
    return key.slice(this.#root.length);
  }
}
