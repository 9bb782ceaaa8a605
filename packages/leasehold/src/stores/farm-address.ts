import { LeaseholdError } from "../lease/errors.js";
import { UrlSettings, agreedOn } from "../runtime/url-settings.js";

/** The kinds of stores, by the scheme of their addresses, and whether an address lists paths or hosts. */
const schemes = {
  file: "paths",
  block: "paths",
  memory: "name",
  redis: "hosts",
  rediss: "hosts",
  postgres: "hosts",
  postgresql: "hosts",
  s3: "hosts",
} as const;

export type Scheme = keyof typeof schemes;

export const schemeNames = Object.keys(schemes) as readonly Scheme[];

/** The maximum number of stores; more would only slow a farm down. */
export const storesMax = 31;

/** The address of one store, without `delta+` and the farm's settings. */
export interface StorePlace {
  readonly scheme: Scheme;
  readonly url: URL;
  /** For messages: no credentials. */
  readonly name: string;
}

/**
 * The farm's settings. They are part of its addresses, because all users need the same settings and can thus
 * share one text.
 */
export interface FarmSettings {
  /** Δ: the longest lease, ms. */
  readonly ttlMaxMs?: number;
  /** δ: the bound on one operation, ms. */
  readonly maxStoreLatencyMs?: number;
  /** ε, ms: `flease+` only. */
  readonly maxClockSkewMs?: number;
  /** ρ */
  readonly clockRateError?: number;
}

export interface FarmAddress {
  /** The algorithm that runs on the stores. */
  readonly ground: "delta" | "flease";
  readonly places: readonly StorePlace[];
  readonly settings: FarmSettings;
}

const form = /^(delta|flease)\+([a-z0-9]+):([^?#]*)(?:\?([^#]*))?$/;

/** Whether the text is an address of stores. */
export function isFarmUrl(url: string): boolean {
  return /^(?:delta|flease)\+/.test(url);
}

/**
 * Parses the addresses of one farm's stores: `delta+file:///mnt/a,/mnt/b,/mnt/c` or
 * `delta+redis://user@h1,h2:6380,h3/0?ttlMax=10s`. Several paths or hosts share the rest of the address; a
 * comma in a path is `%2C`.
 *
 * @throws LeaseholdError `INVALID_URL`, `INVALID_DURATION`
 */
export function parseFarmUrls(urls: readonly string[]): FarmAddress {
  const parsed = urls.map(parseOne);
  const [ground] = parsed.map((each) => each.ground);
  if (parsed.some((each) => each.ground !== ground))
    throw invalid("all stores of a farm must be delta+…, or all flease+…");
  const places = parsed.flatMap((each) => each.places);
  if (places.length > storesMax)
    throw invalid(`a farm has at most ${storesMax} stores; ${places.length} were given`);
  if (places.some(({ scheme }) => scheme === "memory") && places.length > 1)
    throw invalid("stores in memory cannot be mixed with others");
  return { ground: ground!, places, settings: mergeSettings(parsed.map((each) => each.settings)) };
}

function parseOne(text: string): FarmAddress {
  const match = form.exec(text);
  const scheme = match?.[2] ?? "";
  if (match === null || !isScheme(scheme)) {
    const names = schemeNames.join(", ");
    const seen = match === null ? "" : `: ${scheme} is not a kind of store`;
    throw invalid(
      `the address of a store is delta+KIND:… or flease+KIND:…, with KIND one of ${names}${seen}`,
    );
  }
  const query = new UrlSettings(match[4]);
  const ground = match[1] as FarmAddress["ground"];
  const settings = takeSettings(query, ground);
  const places = split(scheme, match[3]!).map((own) => placeOf(scheme, own, query.query));
  return { ground, places, settings };
}

function isScheme(text: string): text is Scheme {
  return Object.hasOwn(schemes, text);
}

/** The addresses of the single stores, without scheme and query. */
function split(scheme: Scheme, rest: string): string[] {
  switch (schemes[scheme]) {
    case "name":
      return [rest];
    case "paths":
      return rest
        .replace(/^\/\/(?=\/)/, "")
        .split(",")
        .map((path) => {
          if (path.startsWith("/") && !path.startsWith("//")) return path;
          throw invalid(
            `the address of a ${scheme} store needs paths that begin with a slash: delta+${scheme}:///mnt/a,/mnt/b`,
          );
        });
    case "hosts": {
      const [, user = "", hosts = "", path = ""] = /^\/\/([^@/]*@)?([^/]*)(\/.*)?$/.exec(rest) ?? [];
      if (hosts === "" && path === "")
        throw invalid(`the address of a ${scheme} store needs a host: delta+${scheme}://h1,h2,h3/…`);
      return hosts.split(",").map((host) => `//${user}${host}${path}`);
    }
  }
}

function placeOf(scheme: Scheme, rest: string, query: URLSearchParams): StorePlace {
  const tail = query.size === 0 ? "" : `?${query.toString()}`;
  const text = `${scheme}:${rest}${tail}`;
  if (!URL.canParse(text)) throw invalid(`one of the addresses of ${scheme} stores is invalid`);
  const url = new URL(text);
  const place = schemes[scheme] === "hosts" ? `//${url.host}${url.pathname}` : rest;
  return { scheme, url, name: `${scheme}:${scheme === "file" ? "//" : ""}${place}` };
}

/** Removes the farm's settings from the query; the rest belongs to the store. */
function takeSettings(from: UrlSettings, ground: FarmAddress["ground"]): FarmSettings {
  const settings = {
    ttlMaxMs: from.takeDuration("ttlMax"),
    maxStoreLatencyMs: from.takeDuration("maxStoreLatency"),
    maxClockSkewMs: from.takeDuration("maxClockSkew"),
    clockRateError: from.takeNumber("clockRateError"),
  };
  if (ground === "delta" && settings.maxClockSkewMs !== undefined)
    throw invalid("maxClockSkew is for flease+…: Δ-leases don't compare clocks");
  return given(settings);
}

function mergeSettings(all: readonly FarmSettings[]): FarmSettings {
  const of = (name: keyof FarmSettings): number | undefined =>
    agreedOn(
      name.replace(/Ms$/, ""),
      all.map((settings) => settings[name]),
    );
  return given({
    ttlMaxMs: of("ttlMaxMs"),
    maxStoreLatencyMs: of("maxStoreLatencyMs"),
    maxClockSkewMs: of("maxClockSkewMs"),
    clockRateError: of("clockRateError"),
  });
}

/** The settings that were given. */
function given(settings: Record<keyof FarmSettings, number | undefined>): FarmSettings {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}

function invalid(why: string): LeaseholdError {
  return new LeaseholdError("INVALID_URL", why);
}
