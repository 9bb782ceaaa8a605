import { parseAddress } from "../../runtime/address.js";
import { parseDuration } from "../../lease/duration.js";
import type { Logger } from "../../runtime/logger.js";
import type { SecurityOptions } from "../../runtime/security/options.js";
import type { FleaseOptions } from "../../flease/tcp/types.js";
import { isCoreUrl } from "../../etcd/address.js";
import { isFarmUrl } from "../../stores/farm-address.js";
import { dataText } from "../../lease/tenure-data.js";
import type { JsonValue } from "../../lease/types.js";
import { usageError } from "./failure.js";
import type { LogFlags } from "./log-options.js";
import { type SecurityFlags, securityOf } from "./security-options.js";

/** The maximum length of a refused value that a message quotes. */
const shownMax = 80;

export type OutputFormat = "table" | "json" | "ndjson";

/** The values of the shared options. */
export interface Settings {
  readonly endpoints: readonly string[];
  readonly output: OutputFormat;
  readonly timeoutMs: number;
  readonly cluster?: string;
  /** The label of the leases of this command. */
  readonly label?: string;
  /** Where the command serves its metrics, `host:port`. */
  readonly metricsAddress?: string;
  readonly log: LogFlags;
  readonly security: SecurityOptions & Pick<FleaseOptions, "role">;
}

/** The options as commander passes them, not validated. */
export interface SharedOptions extends SecurityFlags, LogFlags {
  readonly endpoints?: readonly string[];
  readonly output?: OutputFormat;
  readonly timeout?: string;
  readonly cluster?: string;
  readonly label?: string;
  readonly metricsAddress?: string;
}

/**
 * The first port of the local cluster that `leasehold up` starts; its members listen on this and the
 * following ports.
 */
export const LOCAL_PORT = 7400;

/** The default endpoints, those of the local cluster. */
export const LOCAL_ENDPOINTS: readonly string[] = [0, 1, 2].map(
  (n) => `flease://127.0.0.1:${LOCAL_PORT + n}`,
);

export const TIMEOUT_DEFAULT = "5s";

/** The default wait for a lease. */
export const WAIT_DEFAULT = "1m";

/**
 * Adds one `--endpoints` to the previous ones; `a,b` is the same as giving the option twice. Text without a
 * scheme after an address of stores or a core belongs to that address: `delta+file:///mnt/a,/mnt/b` is one
 * address.
 */
export function collectEndpoints(text: string, before: readonly string[] = []): readonly string[] {
  const given: string[] = [];
  for (const part of text.split(",").map((part) => part.trim())) {
    const last = given.at(-1);
    const isList = last !== undefined && (isFarmUrl(last) || isCoreUrl(last));
    if (isList && !/^[a-z0-9+]+:(?:\/|[a-z])/i.test(part)) given.push(`${given.pop()},${part}`);
    else if (part !== "") given.push(part);
  }
  return [...before, ...given];
}

export function settingsOf(options: SharedOptions): Settings {
  const endpoints = options.endpoints ?? LOCAL_ENDPOINTS;
  if (endpoints.length === 0)
    throw usageError(
      "--endpoints names nothing; give at least one flease://host:port, stores as delta+KIND:…, or a core as core://host:port",
    );
  if (options.metricsAddress !== undefined) parseAddress(options.metricsAddress);
  return {
    endpoints: endpoints.map(withScheme),
    output: options.output ?? "table",
    timeoutMs: parseDuration(options.timeout ?? TIMEOUT_DEFAULT, "--timeout"),
    ...(options.cluster !== undefined && { cluster: options.cluster }),
    ...(options.label !== undefined && { label: options.label }),
    ...(options.metricsAddress !== undefined && { metricsAddress: options.metricsAddress }),
    log: {
      ...(options.logFormat !== undefined && { logFormat: options.logFormat }),
      ...(options.logLevel !== undefined && { logLevel: options.logLevel }),
    },
    security: { ...securityOf(options), ...(options.role !== undefined && { role: options.role }) },
  };
}

/** Refuses `memory:` for commands about other processes, which leases in memory do not have. */
export function refuseMemory(command: string, { endpoints }: Settings): void {
  if (!endpoints.some((endpoint) => endpoint.startsWith("memory:"))) return;
  throw usageError(
    `memory: is in one process alone, and this one has just begun: ${command} has nothing to ask`,
  );
}

/** `--ttl` in ms, to be spread: validated before anything is opened. */
export function ttlOf(ttl: string | undefined): { readonly ttl?: number } {
  return ttl === undefined ? {} : { ttl: parseDuration(ttl, "--ttl") };
}

/** `--data`, to be spread: validated before anything is opened. */
export function dataOf(text: string | undefined): { readonly data?: JsonValue } {
  if (text === undefined) return {};
  let data: JsonValue;
  try {
    data = JSON.parse(text) as JsonValue;
  } catch {
    throw usageError(`--data is no JSON: ${JSON.stringify(text.slice(0, shownMax))}`);
  }
  dataText(data);
  return { data };
}

/** `host:port` without a scheme means a member, because nothing else has that form. */
function withScheme(endpoint: string): string {
  const isWhole = endpoint.startsWith("/") || /^[a-z][a-z0-9+]*:(?!\d+$)/i.test(endpoint);
  return isWhole ? endpoint : `flease://${endpoint}`;
}

export function openOptions(settings: Settings, logger?: Logger): FleaseOptions {
  return {
    timeout: settings.timeoutMs,
    ...(settings.cluster !== undefined && { cluster: settings.cluster }),
    ...(settings.label !== undefined && { label: settings.label }),
    ...(logger !== undefined && { logger }),
    ...settings.security,
  };
}
