import { isIP } from "node:net";
import { LeaseholdError } from "../lease/errors.js";

export interface Address {
  /** A name or an address; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
}

/** The longest DNS name, with its final dot. An IPv6 address with a zone may be as long. */
const hostLengthMax = 254;

/** A host with brackets, a colon and a port. */
export const addressLengthMax = hostLengthMax + 8;

/**
 * The parts of `host:port`; IPv6 addresses need brackets. `portDefault`, if given, replaces a missing port.
 * `undefined` for anything else.
 */
export function readAddress(text: string, portDefault?: number): Address | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.%\w]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(text);
  const bracketed = match?.[1];
  const host = bracketed ?? match?.[2];
  const port = match?.[3] === undefined ? portDefault : Number(match[3]);
  if (host === undefined || host.length > hostLengthMax) return undefined;
  if (port === undefined || port > 65_535) return undefined;
  return bracketed === undefined || isIP(bracketed) === 6 ? { host, port } : undefined;
}

/** Whether a text is `host:port`; IPv6 addresses need brackets. */
export function isAddress(text: string): boolean {
  return readAddress(text) !== undefined;
}

/**
 * Parses `host:port`; IPv6 addresses need brackets.
 *
 * @throws LeaseholdError `INVALID_URL`.
 * @example parseAddress("[::1]:7400") // { host: "::1", port: 7400 }
 */
export function parseAddress(text: string): Address {
  const address = readAddress(text);
  if (address !== undefined) return address;
  throw new LeaseholdError(
    "INVALID_URL",
    `${JSON.stringify(text.replace(/.*@/, "…@"))} is not an address: it should be host:port, such as 10.0.0.1:7400 or [::1]:7400`,
  );
}

/** Formats `host:port`, with brackets where an IPv6 address needs them. */
export function formatAddress(host: string, port: number): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Whether only this machine can reach the host. Names other than `localhost` count as reachable from
 * elsewhere.
 */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host.toLowerCase() === "localhost";
  // WHATWG URLs normalize IPv6 addresses to the short form, with an embedded IPv4 address in hexadecimal.
  if (family === 6) {
    const canonical = new URL(`http://[${host.replace(/%.*$/, "")}]`).hostname;
    return canonical === "[::1]" || /^\[::ffff:7f[0-9a-f]{2}:/.test(canonical);
  }
  return host.startsWith("127.");
}
