import { clockRateErrorDefault, whyNoClockRateError } from "../common/clock-rates.js";
import { LeaseholdError } from "../lease/errors.js";
import { formatAddress, readAddress } from "../runtime/address.js";
import { UrlSettings, agreedOn } from "../runtime/url-settings.js";
import { keyPrefixDefault } from "./keys.js";
import { type CoreAddress, ttlMinMs } from "./terms.js";

/** The port on which etcd serves its clients. */
const portDefault = 2379;

/** Several times the number of servers of any core; each dead one costs a failed attempt. */
const endpointsMax = 31;

/** With a resource's name, this stays far below the longest key that a core accepts. */
const prefixBytesMax = 256;

const ttlMaxMsDefault = 15_000;
/** The longest lease: a crashed holder blocks its resource for this long. */
const ttlMaxMsLimit = 24 * 3_600_000;

/** Whether the text is a `core://` address. */
export function isCoreUrl(url: string): boolean {
  return url.startsWith("core:");
}

const form = /^core:\/\/([^/?#@]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/;

/**
 * Parses `core://host:port,host:port/prefix?ttlMax=15s`; several addresses name servers of one core.
 *
 * @throws LeaseholdError `INVALID_URL`, `INVALID_DURATION`, `INVALID_CONFIG`
 */
export function parseCoreUrls(urls: readonly string[]): CoreAddress {
  const parsed = urls.map(parseOne);
  const endpoints = [...new Set(parsed.flatMap((each) => each.endpoints))];
  if (endpoints.length > endpointsMax)
    throw invalid(`a core has at most ${endpointsMax} addresses, and these are ${endpoints.length}`);
  const ttlMaxs = parsed.map((each) => each.ttlMaxMs);
  const ttlMaxMs = agreedOn("ttlMax", ttlMaxs) ?? ttlMaxMsDefault;
  const rateErrors = parsed.map((each) => each.clockRateError);
  const clockRateError = agreedOn("clockRateError", rateErrors) ?? clockRateErrorDefault;
  if (ttlMaxMs < ttlMinMs || ttlMaxMs > ttlMaxMsLimit)
    throw new LeaseholdError("INVALID_CONFIG", `ttlMax must be 1s to 24h on a core, and is ${ttlMaxMs} ms`);
  const wrong = whyNoClockRateError(clockRateError);
  if (wrong !== undefined) throw new LeaseholdError("INVALID_CONFIG", wrong);
  const prefixes = parsed.map((each) => each.keyPrefix);
  const keyPrefix = agreedOn("the prefix", prefixes) ?? keyPrefixDefault;
  return { endpoints, keyPrefix, ttlMaxMs, clockRateError };
}

function parseOne(text: string) {
  const match = form.exec(text);
  if (match === null)
    throw invalid(
      `an address of a consistent core is core://host:port,host:port with an optional /prefix and ?ttlMax=15s; it holds no user or password`,
    );
  const settings = new UrlSettings(match[3]);
  const ttlMaxMs = settings.takeDuration("ttlMax");
  const clockRateError = settings.takeNumber("clockRateError");
  const [unknown] = settings.query.keys();
  if (unknown !== undefined)
    throw invalid(`${JSON.stringify(unknown)} is no setting of a core: these are ttlMax and clockRateError`);
  return {
    endpoints: match[1]!.split(",").map(endpointOf),
    keyPrefix: prefixOf(match[2]),
    ttlMaxMs,
    clockRateError,
  };
}

function endpointOf(text: string): string {
  const address = readAddress(text, portDefault);
  if (address === undefined || address.port === 0)
    throw invalid(`${JSON.stringify(text)} is no host:port of a core's server`);
  return formatAddress(address.host, address.port);
}

function prefixOf(path: string | undefined): string | undefined {
  if (path === undefined || path === "") return undefined;
  let text: string;
  try {
    text = decodeURIComponent(path);
  } catch {
    throw invalid("the prefix is not percent-encoded UTF-8");
  }
  const prefix = text.endsWith("/") ? text : `${text}/`;
  if (/\p{Cc}/u.test(prefix)) throw invalid("the prefix has a control character");
  if (new TextEncoder().encode(prefix).length > prefixBytesMax)
    throw invalid(`the prefix is longer than ${prefixBytesMax} bytes`);
  return prefix;
}

function invalid(why: string): LeaseholdError {
  return new LeaseholdError("INVALID_URL", why);
}
