import { invalidConfig } from "leasehold/common";
import { type Address, formatAddress, isLoopback, readAddress } from "leasehold/runtime";

/** An address to listen on, or to dial. */
export interface ListenUrl extends Address {
  readonly isTls: boolean;
  /** Path of a Unix socket: host and port are then unused. */
  readonly path?: string;
}

/** The systems' own bound, without the terminating zero. Longer paths would be cut off. */
const pathBytesMax = 103;

/** @throws LeaseholdError `INVALID_CONFIG` */
export function parseUrl(flag: string, text: string): ListenUrl {
  const [, unix, path = ""] = /^(unixs?):\/\/(.+)$/.exec(text) ?? [];
  if (unix !== undefined) {
    if (Buffer.byteLength(path) > pathBytesMax)
      throw invalidConfig(`${flag} has ${text}: the path of a Unix socket has at most ${pathBytesMax} bytes`);
    return { host: "localhost", port: 0, isTls: unix === "unixs", path };
  }
  const [, scheme, place = ""] = /^(https?):\/\/(.*?)\/?$/.exec(text) ?? [];
  const address = readAddress(place);
  if (address === undefined)
    throw invalidConfig(
      `${flag} has ${JSON.stringify(text)}, which is not http://host:port or https://host:port, nor unix://path or unixs://path`,
    );
  return { ...address, isTls: scheme === "https" };
}

/** As text for humans. */
export function placeOf({ host, path, port }: ListenUrl): string {
  return path ?? formatAddress(host, port);
}

/** Splits a list of addresses at its commas. They are returned as given. */
export function parseUrls(flag: string, text: string): string[] {
  const urls = text.split(",").map((part) => part.trim().replace(/\/$/, ""));
  for (const url of urls) parseUrl(flag, url);
  return urls;
}

/** A server must not be open to the whole network unless this is set explicitly. */
export function parseListenUrls(flag: string, text: string, hasTls: boolean, insecure: boolean): ListenUrl[] {
  if (text === "") return [];
  return parseUrls(flag, text).map((url) => {
    const parsed = parseUrl(flag, url);
    if (parsed.isTls && !hasTls)
      throw invalidConfig(`${flag} has ${url}, and there is no certificate for it`);
    if (!parsed.isTls && !insecure && !isLoopback(parsed.host))
      throw invalidConfig(
        `${flag} has ${url}: that is plain TCP beyond loopback, which needs https://, or --insecure if that is meant`,
      );
    return parsed;
  });
}
