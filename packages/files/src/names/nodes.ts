import { LeaseholdError, majorityOf } from "leasehold/common";

/**
 * The most nodes on the list, which is in each node's own record. A list of this length has at most 50 kB.
 */
export const nodesMax = 100;

/** A node as the names record it. */
export interface NodeEntry {
  readonly id: string;
  /** `host:port` at which the other nodes reach it. */
  readonly address: string;
  /** The failure domain: nodes with the same zone may fail together. Empty: this node fails alone. */
  readonly zone: string;
  /** A draining node gets no contents and hands over those that it has. */
  readonly state: "serving" | "draining";
  /**
   * The id of its disk; only acknowledgements of this disk count. Empty until the node has joined with one.
   */
  readonly disk: string;
}

/** All nodes, as part of the names: each change sets a new version. */
export interface NodeList {
  /** 0: the names have no list yet. */
  readonly version: number;
  readonly nodes: readonly NodeEntry[];
  /** The number of nodes on which a put content is placed. */
  readonly copies: number;
}

export const noNodes: NodeList = { version: 0, nodes: [], copies: 3 };

/** A node that has the whole content on this disk. */
export interface Holder {
  readonly node: string;
  readonly disk: string;
}

/** One change of the list. `ifList`: the version of the list that the change is based on. */
export type NodeChange = { readonly ifList: number | null } & (
  | { readonly what: "add"; readonly node: Pick<NodeEntry, "id" | "address" | "zone"> }
  | { readonly what: "drain" | "serve" | "remove"; readonly id: string }
  /** The node has joined with another disk. `before`: the disk that it replaces. */
  | { readonly what: "disk"; readonly id: string; readonly disk: string; readonly before: string }
  | { readonly what: "copies"; readonly copies: number }
);

export interface NodeFacts {
  /** The nodes that keep the names. */
  readonly keepers: readonly string[];
  /** The number of contents placed on a node. */
  readonly placedOn: (node: string) => number;
}

/** @throws LeaseholdError `FILE_CHANGED`, `INVALID_CONFIG` */
export function changedNodes(list: NodeList, change: NodeChange, facts: NodeFacts): NodeList {
  if (change.ifList !== null && change.ifList !== list.version)
    throw new LeaseholdError(
      "FILE_CHANGED",
      `the list of nodes has version ${list.version}, not ${change.ifList}`,
    );
  const next = nodesAfter(list, change, facts);
  return next === list ? list : { ...next, version: list.version + 1 };
}

function nodesAfter(list: NodeList, change: NodeChange, facts: NodeFacts): NodeList {
  switch (change.what) {
    case "add":
      return added(list, change.node);
    case "copies":
      if (!(Number.isInteger(change.copies) && change.copies >= 1 && change.copies <= nodesMax))
        throw new LeaseholdError("INVALID_CONFIG", `copies are 1 to ${nodesMax}`);
      return change.copies === list.copies ? list : { ...list, copies: change.copies };
    case "disk": {
      const node = entryOf(list, change.id);
      if (node.disk === change.disk) return list;
      if (node.disk !== change.before)
        throw new LeaseholdError("FILE_CHANGED", `node ${change.id} has come with another disk meanwhile`);
      return replaced(list, { ...node, disk: change.disk });
    }
    case "remove":
      return removed(list, change.id, facts);
    default: {
      const node = entryOf(list, change.id);
      const state = change.what === "drain" ? "draining" : "serving";
      return node.state === state ? list : replaced(list, { ...node, state });
    }
  }
}

function added(list: NodeList, { id, address, zone }: Pick<NodeEntry, "id" | "address" | "zone">): NodeList {
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(id))
    throw new LeaseholdError("INVALID_CONFIG", `${JSON.stringify(id)} is not a name of a node`);
  if (!/^[A-Za-z0-9.:[\]_%-]{1,200}$/.test(address))
    throw new LeaseholdError("INVALID_CONFIG", `${JSON.stringify(address)} is not the address of a node`);
  if (!/^[A-Za-z0-9._-]{0,64}$/.test(zone))
    throw new LeaseholdError("INVALID_CONFIG", `${JSON.stringify(zone)} is not a name of a zone`);
  const there = list.nodes.find((node) => node.id === id);
  if (there !== undefined)
    return there.address === address && there.zone === zone
      ? list
      : replaced(list, { ...there, address, zone });
  if (list.nodes.length >= nodesMax)
    throw new LeaseholdError("INVALID_CONFIG", `there are ${nodesMax} nodes at most`);
  return { ...list, nodes: [...list.nodes, { id, address, zone, state: "serving", disk: "" }] };
}

function removed(list: NodeList, id: string, { keepers, placedOn }: NodeFacts): NodeList {
  entryOf(list, id);
  if (keepers.includes(id))
    throw new LeaseholdError("INVALID_CONFIG", `node ${id} keeps the names, and cannot be removed`);
  const left = placedOn(id);
  if (left > 0)
    throw new LeaseholdError("INVALID_CONFIG", `node ${id} still has ${left} contents: drain it first`);
  return { ...list, nodes: list.nodes.filter((node) => node.id !== id) };
}

function replaced(list: NodeList, node: NodeEntry): NodeList {
  return { ...list, nodes: list.nodes.map((each) => (each.id === node.id ? node : each)) };
}

function entryOf({ nodes }: NodeList, id: string): NodeEntry {
  const node = nodes.find((each) => each.id === id);
  if (node === undefined)
    throw new LeaseholdError("INVALID_CONFIG", `there is no node ${JSON.stringify(id)} in the list`);
  return node;
}

/**
 * The nodes that should have a content: those with the highest hashes for its id (rendezvous hashing),
 * preferring nodes in different zones. So adding or removing a node moves only that node's share.
 * @param avoid nodes that the caller cannot reach: they come last
 */
export function placementOf(
  { nodes }: NodeList,
  copies: number,
  content: string,
  avoid: readonly string[] = [],
): readonly string[] {
  const ranked = nodes
    .filter(({ state, disk }) => state === "serving" && disk !== "")
    .map((node) => ({ node, isAvoided: avoid.includes(node.id), rank: hashOf(`${content} ${node.id}`) }))
    .sort((one, other) => Number(one.isAvoided) - Number(other.isAvoided) || other.rank - one.rank);
  const zones = new Set<string>();
  const chosen: string[] = [];
  const others: string[] = [];
  for (const { node, isAvoided } of ranked) {
    const isSpread = !isAvoided && (node.zone === "" || !zones.has(node.zone));
    if (isSpread && chosen.length < copies) {
      zones.add(node.zone);
      chosen.push(node.id);
    } else others.push(node.id);
  }
  return [...chosen, ...others.slice(0, Math.max(0, copies - chosen.length))].sort();
}

/** A change of a content's nodes, made by one of them. */
export interface Step {
  readonly nodes: readonly string[];
  /** The node that makes the change: the new one, if any. */
  readonly taker: string;
}

/**
 * One step from the nodes that have a content to those that should have it; undefined when there is nothing
 * to do. A node is dropped only in exchange for another, unless there are more nodes than wanted.
 */
export function stepTo(now: readonly string[], wanted: readonly string[]): Step | undefined {
  const added = wanted.find((node) => !now.includes(node));
  const surplus = now.find((node) => !wanted.includes(node));
  if (wanted.length === 0 || (added === undefined && surplus === undefined)) return undefined;
  const keepsAll = added !== undefined && now.length < wanted.length;
  const kept = keepsAll ? now : now.filter((node) => node !== surplus);
  const nodes = added === undefined ? kept : [...kept, added].sort();
  return { nodes, taker: added ?? kept[0]! };
}

/** Whether a majority of these nodes has the content on disks that count. */
export function isHeld(
  { nodes }: NodeList,
  placement: readonly string[],
  holders: readonly Holder[],
): boolean {
  const having = placement.filter((id) => {
    const disk = nodes.find((node) => node.id === id)?.disk ?? "";
    return disk !== "" && holders.some((holder) => holder.node === id && holder.disk === disk);
  });
  return placement.length > 0 && having.length >= majorityOf(placement.length);
}

/** FNV-1a followed by the final mixing of MurmurHash3, because texts often differ in only one character. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
