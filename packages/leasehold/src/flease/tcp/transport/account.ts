import { isIP } from "node:net";
import { parseAddress } from "../../../runtime/address.js";
import type { Proof } from "../../../runtime/security/proof.js";
import type { Identity } from "../wire/identity.js";

/** Of an IPv6 address so many of its eight groups count: the rest is whatever its owner likes. */
const networkGroups = 4;

/**
 * Whom a peer's resources are charged to: the member that it is, the owner of its certificate, or else, where
 * a key or plain TCP says nothing of who it is, the address that it comes from. All of these are hard to have
 * many of; names and incarnations are not.
 */
export function accountOf(proof: Proof, peer: Identity, address: string): string {
  if (peer.role === "member") return `member ${peer.nodeId}`;
  return proof.account ?? `address ${networkOf(parseAddress(address).host)}`;
}

/** An IPv4 address, also one that is written as IPv6, or the network of an IPv6 address. */
export function networkOf(host: string): string {
  if (isIP(host) !== 6) return host;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(host);
  if (mapped !== null) return mapped[1]!;
  const [head = "", tail = ""] = host.replace(/%.*$/, "").split("::", 2);
  const [before, after] = [head, tail].map((part) => (part === "" ? [] : part.split(":")));
  const zeros = Array.from({ length: 8 - before!.length - after!.length }, () => "0");
  const network = [...before!, ...zeros, ...after!].slice(0, networkGroups);
  return `${network.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::`;
}
