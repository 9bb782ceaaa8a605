import { LeaseholdError } from "../../lease/errors.js";
import { isLoopback } from "../../runtime/address.js";

/** Where to listen, or to connect to. */
export interface ListenUrl {
  /** A name or an address; IPv6 without its brackets. */
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

/** @throws LeaseholdError `INVALID_CONFIG` */
export function parseUrl(flag: string, text: string): ListenUrl {
  const found = /^(https?):\/\/(?:\[([\da-fA-F:.]+)\]|([\w.-]+)):(\d{1,5})\/?$/.exec(text);
  const host = found?.[2] ?? found?.[3];
  const port = Number(found?.[4]);
  if (host === undefined || port > 65_535)
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `${flag} has ${JSON.stringify(text)}, which is not http://host:port or https://host:port`,
    );
  return { host, port, isTls: found?.[1] === "https" };
}

/** Addresses, separated by commas, as they were given. */
export function parseUrls(flag: string, text: string): string[] {
  const urls = text.split(",").map((part) => part.trim().replace(/\/$/, ""));
  for (const url of urls) parseUrl(flag, url);
  return urls;
}

/** Nobody should find a server open to the whole network who has not said so. */
export function parseListenUrls(flag: string, text: string, hasTls: boolean, insecure: boolean): ListenUrl[] {
  return parseUrls(flag, text).map((url) => {
    const parsed = parseUrl(flag, url);
    if (parsed.isTls && !hasTls)
      throw new LeaseholdError("INVALID_CONFIG", `${flag} has ${url}, and there is no certificate for it`);
    if (!parsed.isTls && !insecure && !isLoopback(parsed.host))
      throw new LeaseholdError(
        "INVALID_CONFIG",
        `${flag} has ${url}: that is plain TCP beyond loopback, which needs https://, or --insecure if that is meant`,
      );
    return parsed;
  });
}
