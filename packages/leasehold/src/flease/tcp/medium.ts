import type { Role } from "../../runtime/security/roles.js";
import type { Message } from "../protocol/message.js";
import type { Medium } from "../protocol/proposer-ports.js";
import type { Link } from "./transport/link.js";
import { UnplacedLinks } from "./unplaced-links.js";

/**
 * Carries a peer's messages over TCP. It knows which link leads to which peer. The handle of a member's link
 * is its index among the members.
 */
export class TcpMedium implements Medium {
  readonly #members: (Link | undefined)[] = [];
  readonly #unplaced = new UnplacedLinks();

  /** The link to the member with this index, as long as it is connected. */
  member(index: number): Link | undefined {
    return this.#members[index];
  }

  /** From here on the link leads to the member with this index. */
  place(link: Link, index: number): void {
    link.handle = index;
    this.#members[index] = link;
  }

  /** Whether the link is a client's, or that of a member whose id is not known yet. */
  add(link: Link): void {
    this.#unplaced.add(link);
  }

  /** False for a link that was not added, or was placed since. */
  remove(link: Link): boolean {
    return this.#unplaced.delete(link.handle);
  }

  /** False for a link that is not its member's current one. */
  displace(link: Link): boolean {
    if (this.#members[link.handle] !== link) return false;
    this.#members[link.handle] = undefined;
    return true;
  }

  /** Links of members that have become known, which must be placed. */
  known(members: readonly string[]): Iterable<Link> {
    return this.#unplaced.placed(members);
  }

  /** Whether a member whose id is not known may be connected to this participant. */
  mayCome(stranger: string, role: Role): boolean {
    return this.#unplaced.mayCome(stranger, role);
  }

  clear(): void {
    this.#members.length = 0;
    this.#unplaced.clear();
  }

  send(to: number, message: Message): void {
    this.#members[to]?.send(message);
  }

  reaches(to: number): boolean {
    return this.#members[to]?.open === true;
  }

  notify(to: number, message: Message): boolean {
    const link = this.#members[to] ?? this.#unplaced.get(to);
    if (link === undefined) return false;
    link.send(message);
    return true;
  }
}
