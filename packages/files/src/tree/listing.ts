import { Pauses } from "leasehold/common";
import type { NodeChange } from "../names/nodes.js";
import type { FilesNode } from "../protocol/files-node.js";
import type { NamesClient } from "./names-client.js";

/** Follows the list of nodes, and registers this node's disk and address in it. */
export class Listing {
  readonly #objects: FilesNode;
  readonly #names: NamesClient;
  readonly #address: string;
  readonly #pauses: Pauses;
  #isClosed = false;
  #loop: Promise<void> = Promise.resolve();

  /** @param address this node's address for the other nodes; empty: the one in the list */
  constructor(objects: FilesNode, names: NamesClient, address: string) {
    this.#objects = objects;
    this.#names = names;
    this.#address = address;
    this.#pauses = new Pauses(objects.parts.world.timers);
  }

  begin(): void {
    this.#loop = this.#again();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#pauses.end();
    await this.#loop;
  }

  async #again(): Promise<void> {
    while (!this.#isClosed) {
      if (this.#objects.parts.isJoined()) await this.#look().catch(() => undefined);
      if (!this.#isClosed) await this.#pauses.pause(this.#objects.parts.settings.sweepPauseMs);
    }
  }

  /** A disk that was on the list before may return only if no other disk has replaced it since. */
  async #look(): Promise<void> {
    const { standings } = this.#objects;
    const { list } = await this.#names.ask({ kind: "list" });
    if (list !== undefined) await standings.learn(list);
    const { entry, store } = standings;
    if (entry === undefined) return;
    const { id, zone, disk } = entry;
    if (disk !== store && (disk === "" || !standings.isListed))
      await this.#change({ what: "disk", id, disk: store, before: disk });
    if (this.#address !== "" && entry.address !== this.#address)
      await this.#change({ what: "add", node: { id, zone, address: this.#address } });
  }

  async #change(change: Omitted): Promise<void> {
    const { version: ifList } = this.#objects.standings.list;
    await this.#names.ask({ kind: "commit", change: { kind: "nodes", change: { ...change, ifList } } });
    const { list } = await this.#names.ask({ kind: "list" });
    if (list !== undefined) await this.#objects.standings.learn(list);
  }
}

type Omitted<C extends NodeChange = NodeChange> = C extends unknown ? Omit<C, "ifList"> : never;
