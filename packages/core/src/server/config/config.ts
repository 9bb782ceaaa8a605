import type { AllowedNames, TlsFiles } from "../wire/tls/tls-files.js";
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import { getHeapStatistics } from "node:v8";
import { parseDuration, invalidConfig } from "leasehold/common";
import { type Ciphers, parseCiphers } from "../wire/tls/cipher-suites.js";
import { connectionsMax } from "../accounts/connections-max.js";
import { type AutoCompaction, defaultLimits } from "../../replica/options.js";
import { operationsMost } from "../../state/check.js";
import type { CoreFlags } from "./flags.js";
import { parseTokens, type TokenOptions } from "./token-options.js";
import { type ListenUrl, parseListenUrls, parseUrl, parseUrls } from "../wire/urls.js";

/** A server's validated settings. */
export interface CoreConfig {
  readonly name: string;
  readonly dataDir: string;
  readonly listenClientUrls: readonly ListenUrl[];
  readonly advertiseClientUrls: readonly string[];
  readonly listenMetricsUrls: readonly ListenUrl[];
  readonly listenPeerUrls: readonly ListenUrl[];
  readonly initialCluster: readonly FoundingMember[];
  readonly isNewCluster: boolean;
  readonly token: string;
  /** Makes this server the only one of a new core, with the content of its disk. */
  readonly forceNewCluster: boolean;
  readonly heartbeatMs: number;
  readonly electionTicks: number;
  readonly snapshotEntries: number;
  /** Compare the keys with those of the other servers before serving clients. */
  readonly initialCorruptCheck: boolean;
  /** Interval at which the leader compares the servers' keys, ms; 0: never. */
  readonly corruptCheckMs: number;
  readonly autoCompaction: AutoCompaction | undefined;
  readonly quotaBytes: number;
  readonly requestBytesMax: number;
  readonly operationsMax: number;
  /** Concurrent calls per connection. */
  readonly maxConcurrentStreams: number;
  /** Bound of clients' connections. */
  readonly connectionsMax: number;
  readonly tokens: TokenOptions;
  /**
   * Allowed origins of pages, and allowed host names of this server over HTTP/1.1 without TLS; undefined:
   * all.
   */
  readonly origins: ReadonlySet<string> | undefined;
  readonly hosts: ReadonlySet<string> | undefined;
  readonly clientTls: TlsFiles | undefined;
  readonly peerTls: TlsFiles | undefined;
}

export interface FoundingMember {
  readonly name: string;
  readonly peerUrls: readonly string[];
}

const heartbeatMsDefault = 100;
const electionMsDefault = 1_000;
/** Bounds as in etcd: more than a minute without a leader is useless, and five heartbeats must fit in. */
const electionMsMax = 50_000;
const heartbeatsPerElectionMin = 5;
const snapshotEntriesDefault = 100_000;
/**
 * Some tens of megabytes for small keys. Enough that watches resuming after minutes on a busy core find their
 * position.
 */
const keepRevisionsDefault = 100_000;
const keepMsDefault = 3_600_000;
/** Long enough for ten samples of the revision. */
const keepMsMin = 10_000;
const quotaBytesMost = 2 * 1024 ** 3;
/** Large enough for several requests of the largest kind. */
const quotaBytesMin = 16 * 1024 ** 2;
/** Number of concurrent calls of all connections together. */
const concurrentStreamsMost = 16_384;
const requestBytesMost = 10 * 1024 ** 2;
/** More servers would make writes slower, and nothing safer. */
const membersMax = 9;

/** @throws LeaseholdError `INVALID_CONFIG` */
export function configOf(flags: CoreFlags): CoreConfig {
  const name = flags.name ?? "default";
  const isNewCluster = parseState(flags.initialClusterState);
  const heartbeatMs = whole("--heartbeat-interval", flags.heartbeatInterval, heartbeatMsDefault);
  const electionMs = whole("--election-timeout", flags.electionTimeout, electionMsDefault);
  if (electionMs > electionMsMax || electionMs < heartbeatsPerElectionMin * heartbeatMs)
    throw invalidConfig(
      `--election-timeout ${electionMs} must be ${heartbeatsPerElectionMin} heartbeat intervals (${heartbeatMs} ms each) or more, and ${electionMsMax} ms at most`,
    );
  const peerUrls = parseUrls(
    "--initial-advertise-peer-urls",
    flags.initialAdvertisePeerUrls ?? "http://localhost:2380",
  );
  const clientUrls = flags.listenClientUrls ?? "http://localhost:2379";
  const dataDir = resolve(flags.dataDir ?? `${name}.core`);
  const peerListenUrls = flags.listenPeerUrls ?? "http://localhost:2380";
  const { clientTls, peerTls } = tlsBothWays(flags, dataDir, clientUrls, peerListenUrls);
  const insecure = flags.insecure ?? false;
  const config: CoreConfig = {
    name,
    dataDir,
    listenClientUrls: parseListenUrls("--listen-client-urls", clientUrls, clientTls !== undefined, insecure),
    advertiseClientUrls: parseUrls("--advertise-client-urls", flags.advertiseClientUrls ?? clientUrls),
    listenMetricsUrls: parseListenUrls(
      "--listen-metrics-urls",
      flags.listenMetricsUrls ?? "",
      clientTls !== undefined,
      insecure,
    ),
    listenPeerUrls: parseListenUrls("--listen-peer-urls", peerListenUrls, peerTls !== undefined, insecure),
    initialCluster: parseCluster(flags.initialCluster ?? `${name}=${peerUrls.join(`,${name}=`)}`),
    isNewCluster,
    forceNewCluster: flags.forceNewCluster ?? false,
    token: flags.initialClusterToken ?? "etcd-cluster",
    heartbeatMs,
    electionTicks: Math.ceil(electionMs / heartbeatMs),
    snapshotEntries: whole("--snapshot-count", flags.snapshotCount, snapshotEntriesDefault),
    initialCorruptCheck: flags.experimentalInitialCorruptCheck ?? false,
    corruptCheckMs: parseCheckTime(flags.experimentalCorruptCheckTime),
    autoCompaction: parseCompaction(flags.autoCompactionMode, flags.autoCompactionRetention),
    quotaBytes: parseQuota(flags.quotaBackendBytes),
    requestBytesMax: parseRequestBytes(flags.maxRequestBytes),
    operationsMax: parseOperations(flags.maxTxnOps),
    maxConcurrentStreams: Math.min(
      whole("--max-concurrent-streams", flags.maxConcurrentStreams, concurrentStreamsMost),
      concurrentStreamsMost,
    ),
    connectionsMax: connectionsMax(),
    tokens: parseTokens(flags.authToken, flags.authTokenTtl),
    origins: listed(flags.cors),
    hosts: listed(flags.hostWhitelist),
    clientTls,
    peerTls,
  };
  checkOwnUrls(config, peerUrls);
  return config;
}

/**
 * Without either setting, history is kept by number of revisions: all of it is in memory, which a time would
 * bound only if clients write slowly. A retention without a mode is a time, as in etcd.
 */
function parseCompaction(givenMode?: string, retention?: string): AutoCompaction | undefined {
  const mode = givenMode ?? (retention === undefined ? "revision" : "periodic");
  if (retention === "0") return undefined;
  if (mode === "revision") {
    const keepRevisions = whole("--auto-compaction-retention", retention, keepRevisionsDefault);
    return { mode, keepRevisions };
  }
  if (mode !== "periodic")
    throw invalidConfig(
      `--auto-compaction-mode is ${JSON.stringify(mode)}, and must be "periodic" or "revision"`,
    );
  return { mode, keepMs: retention === undefined ? keepMsDefault : parseRetention(retention) };
}

/** As in etcd: a number of hours, or a duration such as `1h30m`. */
function parseRetention(text: string): number {
  const keepMs = sumOfDurations(/^\d+$/.test(text) ? `${text}h` : text);
  if (keepMs === undefined || keepMs < keepMsMin)
    throw invalidConfig(
      `--auto-compaction-retention is ${JSON.stringify(text)}, and must be a number of hours or a time such as 30m, from 10s on`,
    );
  return keepMs;
}

/** Parses text such as `1h30m`; undefined for other text. */
function sumOfDurations(text: string): number | undefined {
  const parts = text.match(/\d+(?:\.\d+)?(?:ms|s|m|h)/g) ?? [];
  if (parts.length === 0 || parts.join("") !== text) return undefined;
  return parts.reduce((sum, part) => sum + parseDuration(part), 0);
}

/** A comparison visits all keys, so it must not run continuously. */
const checkMsMin = 1_000;

function parseCheckTime(text = "0s"): number {
  const everyMs = /^0(?:ms|s|m|h)?$/.test(text) ? 0 : sumOfDurations(text);
  if (everyMs === undefined || (everyMs > 0 && everyMs < checkMsMin))
    throw invalidConfig(
      `--experimental-corrupt-check-time is ${JSON.stringify(text)}, and must be a time such as 10m, from 1s on, or 0s`,
    );
  return everyMs;
}

/** If missing, or 0 as in etcd, the default applies. */
function parseQuota(text = "0"): number {
  const quotaBytes = text === "0" ? quotaBytesDefault() : whole("--quota-backend-bytes", text, 0);
  if (quotaBytes < quotaBytesMin)
    throw invalidConfig(`--quota-backend-bytes is ${quotaBytes}, and must be ${quotaBytesMin} or more`);
  return quotaBytes;
}

/**
 * etcd's 2 GB, or half of this process's heap limit if that is less: the log's tail, snapshots and answers
 * also need room.
 */
function quotaBytesDefault(): number {
  return Math.min(quotaBytesMost, Math.floor(getHeapStatistics().heap_size_limit / 2));
}

/** Larger requests would delay others too long: etcd warns about them. */
function parseRequestBytes(text: string | undefined): number {
  const bytes = whole("--max-request-bytes", text, defaultLimits.requestBytesMax);
  if (bytes > requestBytesMost)
    throw invalidConfig(`--max-request-bytes is ${bytes}, and must be ${requestBytesMost} at most`);
  return bytes;
}

function parseOperations(text: string | undefined): number {
  const operations = whole("--max-txn-ops", text, defaultLimits.operationsMax);
  if (operations > operationsMost)
    throw invalidConfig(`--max-txn-ops is ${operations}, and must be ${operationsMost} at most`);
  return operations;
}

function parseState(text = "new"): boolean {
  if (text !== "new" && text !== "existing")
    throw invalidConfig(
      `--initial-cluster-state is ${JSON.stringify(text)}, and must be "new" or "existing"`,
    );
  return text === "new";
}

function whole(flag: string, text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || !Number.isSafeInteger(value))
    throw invalidConfig(`${flag} is ${JSON.stringify(text)}, and must be a whole number from 1 on`);
  return value;
}

/** Parses `a=http://h1:2380,b=http://h2:2380`. A member with several addresses appears several times. */
function parseCluster(text: string): FoundingMember[] {
  const urls = new Map<string, string[]>();
  for (const part of text.split(",")) {
    const [, name, url] = /^\s*([^=\s]+)=(\S+)\s*$/.exec(part) ?? [];
    if (name === undefined || url === undefined)
      throw invalidConfig(
        `--initial-cluster has ${JSON.stringify(part)}, which is not name=http://host:port`,
      );
    urls.set(name, [...(urls.get(name) ?? []), ...parseUrls("--initial-cluster", url)]);
  }
  if (urls.size > membersMax)
    throw invalidConfig(`--initial-cluster names ${urls.size} servers, at most ${membersMax}`);
  const all = [...urls.values()].flat();
  const twice = all.find((url, index) => all.indexOf(url) !== index);
  if (twice !== undefined) throw invalidConfig(`--initial-cluster names ${twice} twice`);
  return [...urls].map(([name, peerUrls]) => ({ name, peerUrls: peerUrls.toSorted() }));
}

/** The other servers reach and identify this server by their own settings. */
function checkOwnUrls({ name, initialCluster }: CoreConfig, advertised: readonly string[]): void {
  const own = initialCluster.find((member) => member.name === name);
  if (own === undefined)
    throw invalidConfig(`--initial-cluster does not name this server, ${JSON.stringify(name)}`);
  const given = advertised.toSorted().join();
  if (own.peerUrls.join() !== given)
    throw invalidConfig(
      `--initial-cluster has ${own.peerUrls.join()} for ${name}, and --initial-advertise-peer-urls is ${given}`,
    );
}

/** An empty list, or one with a star, means all. */
function listed(text = ""): ReadonlySet<string> | undefined {
  const names = text.split(",").map((part) => part.trim());
  return text === "" || names.includes("*") ? undefined : new Set(names);
}

/** TLS settings for clients, and for servers. */
function tlsBothWays(
  flags: CoreFlags,
  dataDir: string,
  clientUrls: string,
  peerListenUrls: string,
): Pick<CoreConfig, "clientTls" | "peerTls"> {
  const ciphers = parseCiphers(flags.cipherSuites);
  const clientTls =
    tlsOf("", {
      certFile: flags.certFile,
      keyFile: flags.keyFile,
      trustedCaFile: flags.trustedCaFile,
      clientCertAuth: flags.clientCertAuth,
      crlFile: flags.clientCrlFile,
      allowed: allowedNames("client-", undefined, flags.clientCertAllowedHostname),
      ciphers,
    }) ?? selfMade("auto-tls", flags.autoTls, join(dataDir, "fixtures", "client"), clientUrls, ciphers);
  const peerTls =
    tlsOf("peer-", {
      certFile: flags.peerCertFile,
      keyFile: flags.peerKeyFile,
      trustedCaFile: flags.peerTrustedCaFile,
      clientCertAuth: flags.peerClientCertAuth,
      crlFile: flags.peerCrlFile,
      allowed: allowedNames("peer-", flags.peerCertAllowedCn, flags.peerCertAllowedHostname),
      ciphers,
    }) ??
    selfMade("peer-auto-tls", flags.peerAutoTls, join(dataDir, "fixtures", "peer"), peerListenUrls, ciphers);
  return { clientTls, peerTls };
}

/** Self-made certificates are kept in the same folders as etcd's. */
function selfMade(
  flag: string,
  isWanted = false,
  folder: string,
  urls: string,
  ciphers: Ciphers | undefined,
): TlsFiles | undefined {
  if (!isWanted) return undefined;
  const hosts = parseUrls(`--${flag}: an address`, urls).map((url) => parseUrl(flag, url).host);
  return {
    certFile: join(folder, "cert.pem"),
    keyFile: join(folder, "key.pem"),
    trustedCaFile: undefined,
    clientCertAuth: false,
    selfMadeFor: [...new Set(hosts)],
    ciphers,
  };
}

function tlsOf(
  prefix: "" | "peer-",
  given: { readonly [Name in keyof TlsFiles]: TlsFiles[Name] | undefined },
): TlsFiles | undefined {
  const { allowed, certFile, ciphers, clientCertAuth = false, crlFile, keyFile, trustedCaFile } = given;
  const files = [certFile, crlFile, keyFile, trustedCaFile, allowed];
  if (files.every((file) => file === undefined) && !clientCertAuth) return undefined;
  if (certFile === undefined || keyFile === undefined)
    throw invalidConfig(`--${prefix}cert-file and --${prefix}key-file are needed together`);
  if (clientCertAuth && trustedCaFile === undefined)
    throw invalidConfig(`--${prefix}client-cert-auth needs --${prefix}trusted-ca-file`);
  const isMeaningless = (crlFile ?? allowed) !== undefined && trustedCaFile === undefined;
  if (isMeaningless)
    throw invalidConfig(
      `--${prefix === "" ? "client-" : prefix}${crlFile === undefined ? "cert-allowed-…" : "crl-file"} needs --${prefix}trusted-ca-file: else nobody shows a certificate`,
    );
  return { certFile, keyFile, trustedCaFile, clientCertAuth, crlFile, allowed, ciphers };
}

/** Names are separated by commas, as in later versions of etcd. */
function allowedNames(prefix: string, commonNames = "", hosts = ""): AllowedNames | undefined {
  if (commonNames !== "" && hosts !== "")
    throw invalidConfig(`--${prefix}cert-allowed-cn and --${prefix}cert-allowed-hostname exclude each other`);
  if (commonNames !== "") {
    const names = commonNames.split(",").map((name) => name.trim());
    // Otherwise a certificate without a common name would match.
    if (names.includes("")) throw invalidConfig(`--${prefix}cert-allowed-cn has an empty name`);
    return { kind: "common name", names };
  }
  if (hosts === "") return undefined;
  const names = hosts.split(",").map((name) => name.trim());
  // A name with a leading dot would match all subdomains (OpenSSL), which was not intended.
  const none = names.find((name) => isIP(name) === 0 && !/^(\*\.)?[\w-]+(\.[\w-]+)*$/.test(name));
  if (none !== undefined)
    throw invalidConfig(`--${prefix}cert-allowed-hostname has ${JSON.stringify(none)}, which is no host`);
  return { kind: "host", names };
}

/** Peer URLs of the other servers in `--initial-cluster`. */
export function otherPeerUrls({ initialCluster, name }: CoreConfig): string[] {
  return initialCluster.filter((member) => member.name !== name).flatMap(({ peerUrls }) => peerUrls);
}
