import { readFileSync } from "node:fs";
import type { CoreFlags } from "../index.js";
import { usageError } from "leasehold/cli";

/** An etcd flag for which the core has no setting. */
interface Foreign {
  /** Why it has no effect; or, with `refused`, why it is not supported. */
  readonly why: string;
  readonly isRefused?: boolean;
  /** Values that match the core's fixed behaviour, and so cause no warning. */
  readonly fits?: readonly string[];
}

const diskFormat = "the core keeps its data in another way";
const noV2 = "the core has etcd's v3 API only";
const noDiscovery = "the core finds its servers by --initial-cluster";

/** Flags of etcd 3.4 and 3.5 that have no effect here, or that configure functions the core lacks. */
export const foreign: Readonly<Record<string, Foreign>> = {
  "wal-dir": { why: "the log lies in --data-dir", isRefused: true },
  "max-snapshots": { why: "two snapshots are kept" },
  "max-wals": { why: "the log is kept as long as it is needed" },
  "backend-batch-interval": { why: diskFormat },
  "backend-batch-limit": { why: diskFormat },
  "backend-bbolt-freelist-type": { why: diskFormat },
  "grpc-keepalive-min-time": { why: "no client is sent away for its pings" },
  "grpc-keepalive-interval": { why: "silent connections are asked after two hours", fits: ["2h", "2h0m0s"] },
  "grpc-keepalive-timeout": { why: "silent connections have 20 s to answer", fits: ["20s"] },
  "initial-election-tick-advance": { why: "a server waits for a leader before it asks for votes" },
  discovery: { why: noDiscovery, isRefused: true, fits: [""] },
  "discovery-fallback": { why: noDiscovery },
  "discovery-proxy": { why: noDiscovery },
  "discovery-srv": { why: noDiscovery, isRefused: true, fits: [""] },
  "discovery-srv-name": { why: noDiscovery },
  "strict-reconfig-check": { why: "it is always on", fits: ["true"] },
  "pre-vote": { why: "it is always on", fits: ["true"] },
  "enable-v2": { why: noV2, isRefused: true, fits: ["false"] },
  "v2-deprecation": { why: noV2 },
  proxy: { why: noV2, isRefused: true, fits: ["off"] },
  "proxy-failure-wait": { why: noV2, fits: ["5000"] },
  "proxy-refresh-interval": { why: noV2, fits: ["30000"] },
  "proxy-dial-timeout": { why: noV2, fits: ["1000"] },
  "proxy-write-timeout": { why: noV2, fits: ["5000"] },
  "proxy-read-timeout": { why: noV2, fits: ["0"] },
  "enable-grpc-gateway": { why: "JSON is always answered", fits: ["true"] },
  "listen-client-http-urls": {
    why: "gRPC and HTTP share --listen-client-urls",
    isRefused: true,
    fits: [""],
  },
  "client-cert-file": { why: "the server is no client of its own", fits: [""] },
  "client-key-file": { why: "the server is no client of its own", fits: [""] },
  "peer-client-cert-file": { why: "servers show --peer-cert-file", isRefused: true, fits: [""] },
  "peer-client-key-file": { why: "servers show --peer-cert-file", isRefused: true, fits: [""] },
  "self-signed-cert-validity": {
    why: "certificates that the server makes are good for a year, and made anew in time",
    fits: ["1"],
  },
  "tls-min-version": {
    why: "TLS begins at 1.2; --cipher-suites says more",
    isRefused: true,
    fits: ["", "TLS1.2"],
  },
  "tls-max-version": {
    why: "TLS ends at 1.3; --cipher-suites says more",
    isRefused: true,
    fits: ["", "TLS1.3"],
  },
  "socket-reuse-port": { why: "one server has a port", fits: ["false"] },
  "socket-reuse-address": { why: "Node sets it", fits: ["true"] },
  "raft-read-timeout": { why: "a silent server is given up after --election-timeout" },
  "raft-write-timeout": { why: "a silent server is given up after --election-timeout" },
  "bcrypt-cost": { why: "passwords are hashed with the core's own cost" },
  "enable-pprof": { why: "Node has --cpu-prof and --inspect", fits: ["false"] },
  metrics: { why: "there is one set of metrics", fits: ["basic"] },
  logger: { why: "there is one logger", fits: ["zap"] },
  "enable-log-rotation": { why: "a file may be moved away at any time", fits: ["false"] },
  "log-rotation-config-json": { why: "a file may be moved away at any time" },
  debug: { why: "use --log-level" },
  "log-package-levels": { why: "use --log-level" },
  "unsafe-no-fsync": { why: "what is acknowledged is on disk", isRefused: true, fits: ["false"] },
};

/** Experimental flags come and go between versions of etcd. */
const experimental = /^experimental-/;

/** Names of the experimental etcd flags on a command line. */
export function experimentalIn(words: readonly string[]): string[] {
  return words.flatMap((word) => /^--(experimental-[a-z0-9-]+)(?:=|$)/.exec(word)?.[1] ?? []);
}

export type Given = Readonly<Record<string, string | boolean | undefined>>;

export interface CoreSettings {
  readonly flags: CoreFlags;
  readonly warnings: readonly string[];
}

const flagOf = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
const nameOf = (flag: string) => flag.replaceAll(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/**
 * A server's settings. They come from a file in etcd's format alone, if one is given; otherwise from the
 * command line, and for flags missing there from the environment (`ETCD_NAME`).
 *
 * @param known the core's own flags that take a text, and those that are switches
 * @throws LeaseholdError `INVALID_CONFIG`
 */
export async function coreSettings(
  line: Given,
  environment: NodeJS.ProcessEnv,
  known: { readonly texts: ReadonlySet<string>; readonly switches: ReadonlySet<string> },
): Promise<CoreSettings> {
  const { configFile = environment["ETCD_CONFIG_FILE"], ...own } = line;
  const beside = Object.keys(own).find((name) => own[name] !== undefined);
  if (configFile !== undefined && beside !== undefined)
    throw usageError(`--${flagOf(beside)} stands beside --config-file, which holds alone, as at etcd`);
  const given =
    configFile === undefined
      ? { ...fromEnvironment(environment), ...own }
      : await fromFile(String(configFile));
  const flags: Record<string, string | boolean> = {};
  const warnings: string[] = [];
  for (const [name, value] of Object.entries(given)) {
    const flag = flagOf(name);
    if (value === undefined) continue;
    if (known.switches.has(flag)) flags[name] = switchOf(flag, value);
    else if (known.texts.has(flag)) flags[name] = String(value);
    else if (isForeign(flag) || configFile !== undefined || own[name] !== undefined) {
      const warning = foreignFlag(flag, String(value));
      if (warning !== undefined) warnings.push(warning);
    } else warnings.push(`the environment has ${variableOf(flag)}, which is no setting of the core`);
  }
  return { flags, warnings };
}

function switchOf(flag: string, value: string | boolean): boolean {
  if (value === true || value === "true") return true;
  if (value === false || value === "false") return false;
  throw usageError(`--${flag} is ${JSON.stringify(value)}, and must be true or false`);
}

const isForeign = (flag: string) => Object.hasOwn(foreign, flag) || experimental.test(flag);
const variableOf = (flag: string) => `ETCD_${flag.replaceAll("-", "_").toUpperCase()}`;

/** Returns the warning about the flag, if any. */
function foreignFlag(flag: string, value: string): string | undefined {
  const found = Object.hasOwn(foreign, flag) ? foreign[flag] : undefined;
  if (found === undefined) {
    if (experimental.test(flag)) return `--${flag} has no effect: the core does not have it`;
    throw usageError(`--${flag} is not a flag of the core, nor a known flag of etcd`);
  }
  const { fits = [], isRefused = false, why } = found;
  if (fits.includes(value)) return undefined;
  if (isRefused) throw usageError(`--${flag} cannot be taken: ${why}`);
  return `--${flag} has no effect: ${why}`;
}

/** Variables of etcd's own tools and client, which do not configure a server. */
const notSettings = /^ETCD_(?:UNSUPPORTED_ARCH|VERIFY|VER|VERSION|CONFIG_FILE)$/;

function fromEnvironment(environment: NodeJS.ProcessEnv): Given {
  const own = Object.entries(environment).filter(
    ([variable]) => variable.startsWith("ETCD_") && !notSettings.test(variable),
  );
  return Object.fromEntries(
    own.map(([variable, value]) => [
      nameOf(variable.slice("ETCD_".length).toLowerCase().replaceAll("_", "-")),
      value,
    ]),
  );
}

/** Sections of etcd's file, each with the prefix that its keys have as flags. */
const sections: Readonly<Record<string, string>> = {
  "client-transport-security": "",
  "peer-transport-security": "peer-",
};
/** Keys whose flag is not the section's prefix followed by the key. */
const sectionFlags: Readonly<Record<string, string>> = {
  "crl-file": "client-crl-file",
  "allowed-hostname": "client-cert-allowed-hostname",
  "peer-allowed-cn": "peer-cert-allowed-cn",
  "peer-allowed-hostname": "peer-cert-allowed-hostname",
};

async function fromFile(path: string): Promise<Given> {
  const yaml = await import("yaml");
  let content: unknown;
  try {
    content = yaml.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw usageError(`${path} cannot be read: ${(error as Error).message}`);
  }
  const found: Record<string, string | boolean> = {};
  const take = (flag: string, value: unknown) => {
    if (value === null || value === undefined) return;
    found[nameOf(flag)] =
      typeof value === "boolean" ? value : Array.isArray(value) ? value.join() : String(value);
  };
  for (const [word, value] of entriesOf(path, content ?? {})) {
    const prefix = Object.hasOwn(sections, word) ? sections[word] : undefined;
    if (prefix === undefined) take(word, value);
    else
      for (const [inner, innerValue] of entriesOf(path, value ?? {}))
        take(sectionFlags[`${prefix}${inner}`] ?? `${prefix}${inner}`, innerValue);
  }
  return found;
}

function entriesOf(path: string, content: unknown): [string, unknown][] {
  if (typeof content !== "object" || content === null || Array.isArray(content))
    throw usageError(`${path} is no list of settings, each as name: value`);
  return Object.entries(content);
}
