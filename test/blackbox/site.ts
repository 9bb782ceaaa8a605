import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { networkInterfaces } from "node:os";

/**
 * The network of a run: a bridge, and on it a network namespace for each process. nftables rules live in the
 * namespaces and vanish with them. Everything here has the run's process id in its name, is made by root, and
 * is removed by {@link Site.remove}, which needs no event loop.
 */

/** The Debian packages of the programs that a run needs, by program. */
export const neededPackages = { ip: "iproute2", nft: "nftables" } as const;

const prefix = "lhb";

export interface Place {
  /** The name of the namespace. */
  readonly namespace: string;
  readonly address: string;
}

export class Site {
  /** The bridge's address, reachable from this process and from every place. */
  readonly address: string;
  readonly #bridge = `${prefix}${process.pid}`;
  readonly #subnet = freeSubnet();
  readonly #places: Place[] = [];
  /** The ends of the veth pairs at the bridge, which would outlive their namespaces for a while. */
  readonly #links: string[] = [];

  constructor() {
    removeLeftovers();
    process.once("exit", () => this.remove());
    this.address = `${this.#subnet}.1`;
    ip("link", "add", this.#bridge, "type", "bridge");
    ip("address", "add", `${this.address}/24`, "dev", this.#bridge);
    ip("link", "set", this.#bridge, "up");
  }

  addPlace(): Place {
    const number = this.#places.length;
    const place = {
      namespace: `${prefix}-${process.pid}-${number}`,
      address: `${this.#subnet}.${10 + number}`,
    };
    // Registered before it is made, so that a half-made place is removed too.
    this.#places.push(place);
    const { namespace } = place;
    const outside = `${this.#bridge}v${number.toString(36)}`;
    this.#links.push(outside);
    ip("netns", "add", namespace);
    ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", namespace);
    ip("link", "set", outside, "master", this.#bridge, "up");
    ip("-n", namespace, "address", "add", `${place.address}/24`, "dev", "eth0");
    ip("-n", namespace, "link", "set", "eth0", "up");
    ip("-n", namespace, "link", "set", "lo", "up");
    return place;
  }

  remove(): void {
    for (const link of this.#links.splice(0)) tryIp("link", "delete", link);
    for (const { namespace } of this.#places.splice(0)) tryIp("netns", "delete", namespace);
    tryIp("link", "delete", this.#bridge);
  }
}

/** Packets to drop at a place. */
export interface Filter {
  /** Percentage of packets dropped in each direction. */
  readonly inPercent: number;
  readonly outPercent: number;
  /** Limits the filter to packets from and to this address. */
  readonly peer?: string;
  /** Limits the filter to connections that have this port at either end. */
  readonly port?: number;
}

export const cutBothWays: Filter = { inPercent: 100, outPercent: 100 };

/** Replaces the rules of a place. Without a filter all packets pass. */
export function setFilter({ namespace }: Place, filter?: Filter): void {
  const chain = (hook: "input" | "output", percent: number): string =>
    `chain ${hook} { type filter hook ${hook} priority 0; policy accept; ${dropping(hook, percent, filter)} }`;
  const chains =
    filter === undefined ? "" : `${chain("input", filter.inPercent)}\n${chain("output", filter.outPercent)}`;
  // One transaction, so that there is no moment between the old rules and the new.
  const rules = `table inet ${prefix}\ndelete table inet ${prefix}\ntable inet ${prefix} {\n${chains}\n}\n`;
  execFileSync("ip", ["netns", "exec", namespace, "nft", "-f", "-"], { input: rules, stdio: "pipe" });
}

/** The number of packets that the current filter of a place has dropped. */
export function droppedAt({ namespace }: Place): number {
  const rules = ip("netns", "exec", namespace, "nft", "list", "table", "inet", prefix);
  return [...rules.matchAll(/counter packets (\d+)/g)].reduce((sum, [, packets]) => sum + Number(packets), 0);
}

/**
 * An nftables expression that drops this percentage. nftables refuses a comparison that is always true, such
 * as one for 100 %.
 */
function dropping(hook: "input" | "output", percent: number, { peer, port }: Partial<Filter> = {}): string {
  if (percent === 0) return "";
  const from = peer === undefined ? "" : `ip ${hook === "input" ? "saddr" : "daddr"} ${peer} `;
  const ports = port === undefined ? ["meta l4proto tcp"] : [`tcp sport ${port}`, `tcp dport ${port}`];
  const some = percent === 100 ? "" : `numgen random mod 100 < ${percent} `;
  return ports.map((match) => `${from}${match} ${some}counter drop;`).join(" ");
}

function ip(...words: string[]): string {
  return execFileSync("ip", words, { encoding: "utf8", stdio: "pipe" });
}

/** Ignores errors: some of what is removed may be gone already. */
function tryIp(...words: string[]): void {
  try {
    ip(...words);
  } catch {
    // There is nothing to remove.
  }
}

/** Removes the leftovers of runs that were killed before they could clean up. */
function removeLeftovers(): void {
  const names = ip("netns", "list")
    .split("\n")
    .map((line) => line.split(" ")[0]!);
  for (const name of names) {
    const pid = new RegExp(`^${prefix}-(\\d+)-\\d+$`).exec(name)?.[1];
    if (pid !== undefined && isGone(Number(pid))) tryIp("netns", "delete", name);
  }
  for (const name of readdirSync("/sys/class/net")) {
    const pid = new RegExp(`^${prefix}(\\d+)(v\\w+)?$`).exec(name)?.[1];
    if (pid !== undefined && isGone(Number(pid))) tryIp("link", "delete", name);
  }
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

/** The first three numbers of a private /24 network that no interface here uses. */
function freeSubnet(): string {
  const used = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  for (let number = process.pid % 256, tries = 0; tries < 256; number = (number + 1) % 256, tries++) {
    const subnet = `10.213.${number}`;
    if (!used.some(({ address }) => address.startsWith(`${subnet}.`))) return subnet;
  }
  throw new Error("every network from 10.213.0.0 to 10.213.255.0 is in use here");
}
