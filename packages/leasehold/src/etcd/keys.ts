import { slotMark } from "../lease/slots.js";

/** The prefix of keys in the core, unless the address names another. */
export const keyPrefixDefault = "leasehold/";

/** Leases have their own level below the prefix, so that other data can have other levels. */
const level = "leases/";

/** The level of the queues of fair callers. */
const linesLevel = "lines/";

/** The level of the members of groups that are plain keys. */
const membersLevel = "members/";

/** Maps resources' names to keys and back. */
export class Keys {
  readonly #root: string;
  readonly #lines: string;
  readonly #members: string;

  constructor(prefix: string) {
    this.#root = prefix + level;
    this.#lines = prefix + linesLevel;
    this.#members = prefix + membersLevel;
  }

  /** The key of a resource; for a prefix of names, the prefix of their keys. */
  of(resource: string): string {
    return this.#root + resource;
  }

  /** The prefix of the keys of all callers queueing for a resource; a number follows. */
  lineOf(resource: string): string {
    return this.#lines + resource + slotMark;
  }

  /** The prefix of the keys of a group's members; a member's name follows. */
  membersOf(group: string): string {
    return `${this.#members}${group}/`;
  }

  resourceOf(key: string): string {
    return key.slice(this.#root.length);
  }
}
