import { isIP } from "node:net";
import { parseAddress } from "../../../runtime/address.js";
import type { Proof } from "../../../runtime/security/proof.js";
import type { Identity } from "../wire/identity.js";

/** Number of groups that count in an IPv6 address: the owner chooses the rest. */
const networkGroups = 4;

/**
 * The account that a peer's resources are charged to: the member it is, or the owner of its certificate,
 * or, where a key or plain TCP proves no identity, its network address. Having many of these is hard;
 * having many names or incarnations is not.
 */
export function accountOf(proof: Proof, peer: Identity, address: string): string {
  if (peer.role === "member") return `member ${peer.nodeId}`;
  return proof.account ?? `address ${networkOf(parseAddress(address).host)}`;
}

/** An IPv4 address (also one mapped to IPv6), or the network of an IPv6 address. */
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
