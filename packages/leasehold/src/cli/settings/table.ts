import { logFormats, logLevels } from "../../runtime/event-log.js";
import { limitOfCode } from "./kinds.js";
import type { Kind } from "./kinds.js";

// An option that may be set once for a machine: by a flag, a variable or a file. Comments that would be
// copied into the declarations are line comments, because declarations are installed.
export interface Setting {
  // The option, as commander reads it.
  readonly flags: string;
  readonly what: string;
  readonly kind: Kind;
  // The default value, or a text that says what happens without the setting.
  readonly initial?: string | number;
  // The variable, if it is not derived from the key.
  readonly variable?: string;
  // The value is secret: it is never printed, and a settings file may only name a file that contains it.
  readonly isSecret?: true;
  // The file that the setting names contains a secret.
  readonly holdsSecret?: true;
  // A running server applies a new value at SIGHUP.
  readonly reload?: true;
  // Keys whose values from weaker sources are ignored if this one is set.
  readonly replaces?: readonly string[];
  // Options of a call, by commander's names. If one is given, a value of this setting from a weaker source is
  // ignored.
  readonly yieldsTo?: readonly string[];
}

const certificates = ["tls.ca", "tls.cert", "tls.key"];
const credentials = ["files.user", "files.userFile", "files.users"];
const except = (keys: readonly string[], key: string) => keys.filter((each) => each !== key);

const text = { type: "text" } as const;
const file = { type: "file" } as const;
const path = { type: "path" } as const;
const flag = { type: "flag" } as const;
const duration = { type: "duration" } as const;
const address = { type: "address" } as const;
const addresses = { type: "addresses" } as const;
const addressList = { type: "list" } as const;
const count = (min: number, max: number) => ({ type: "count", min, max }) as const;
const exit = count(0, limitOfCode);

/**
 * Keeps the keys in the type, but the values only as {@link Setting}, to keep the installed declarations
 * small.
 */
function keyed<Key extends string>(all: Record<Key, Setting>): Readonly<Record<Key, Setting>> {
  return all;
}

// Every setting, by its key in a file; a dot separates a section from the key in it. The options of the
// commands, their environment variables, the JSON Schema, `docs/configuration.md` and what `leasehold config`
// says are generated from this table.
export const settings = keyed({
  endpoints: {
    flags: "--endpoints <urls>",
    what: "members to ask, stores (delta+KIND:…) or a core (core://…), repeated or separated by commas",
    kind: addressList,
  },
  cluster: {
    flags: "--cluster <name>",
    what: "expected cluster name; other clusters are refused",
    kind: text,
  },
  output: {
    flags: "-o, --output <format>",
    what: "output format: a table, or JSON for programs",
    kind: { type: "choice", choices: ["table", "json", "ndjson"] },
  },
  timeout: {
    flags: "--timeout <duration>",
    what: "how long to wait for an answer",
    kind: duration,
    initial: "5s",
  },
  "tls.ca": {
    flags: "--tls-ca <file>",
    what: "certificate of the cluster's authority, PEM",
    kind: file,
    replaces: ["keyFile"],
  },
  "tls.cert": { flags: "--tls-cert <file>", what: "our certificate, PEM", kind: file, replaces: ["keyFile"] },
  "tls.key": {
    flags: "--tls-key <file>",
    what: "our certificate's private key, PEM",
    kind: file,
    holdsSecret: true,
    replaces: ["keyFile"],
  },
  keyFile: {
    flags: "--key-file <file>",
    what: "the cluster key, instead of certificates; at core, the private key of --cert-file",
    kind: file,
    holdsSecret: true,
    replaces: certificates,
  },
  role: {
    flags: "--role <role>",
    what: "role; an observer takes no leases",
    kind: { type: "choice", choices: ["client", "observer"] },
    initial: "what the credentials allow",
  },
  ttl: {
    flags: "--ttl <duration>",
    what: "length of the lease",
    kind: duration,
    initial: "the longest that the cluster allows",
  },
  wait: {
    flags: "--wait <duration>",
    what: "how long to wait for the lease",
    kind: duration,
    initial: "1m",
    yieldsTo: ["try", "attach"],
  },
  label: { flags: "--label <text>", what: "a note shown with the holder", kind: text },
  killAfter: {
    flags: "--kill-after <duration>",
    what: "time from SIGTERM to SIGKILL",
    kind: duration,
    initial: "a quarter of the ttl, at most 5s",
  },
  conflictExitCode: {
    flags: "--conflict-exit-code <n>",
    what: "exit code when another holds it",
    kind: exit,
    initial: 75,
  },
  lostExitCode: {
    flags: "--lost-exit-code <n>",
    what: "exit code when the lease is lost",
    kind: exit,
    initial: 76,
  },
  metricsAddress: {
    flags: "--metrics-address <host:port>",
    what: "serve metrics and health by HTTP there, such as 127.0.0.1:9464",
    kind: address,
  },
  logFormat: {
    flags: "--log-format <format>",
    what: "log to standard error: JSON lines for programs, or text",
    kind: { type: "choice", choices: logFormats },
  },
  logLevel: {
    flags: "--log-level <level>",
    what: "the least level of what is logged",
    kind: { type: "choice", choices: logLevels },
    initial: "info",
    reload: true,
  },
  id: { flags: "--id <id>", what: "name of this member or node", kind: text },
  members: {
    flags: "--member <id=host:port>",
    what: "one member, this one included; once for each",
    kind: addresses,
  },
  listen: {
    flags: "--listen <host:port>",
    what: "address to listen on",
    kind: address,
    initial: "this member's own",
  },
  ttlMax: {
    flags: "--ttl-max <duration>",
    what: "longest lease, the same on every member",
    kind: duration,
    initial: "15s",
  },
  maxClockSkew: {
    flags: "--max-clock-skew <duration>",
    what: "how far clocks may be apart, the same on every member",
    kind: duration,
    initial: "500ms",
  },
  clockRateError: {
    flags: "--clock-rate-error <fraction>",
    what: "rate error of a steady clock, the same on every member",
    kind: { type: "fraction" },
    initial: "0.1",
  },
  cellSize: {
    flags: "--cell-size <n>",
    what: "how many members coordinate one resource, the same on every member",
    kind: count(1, 31),
    initial: "all, from 6 members on 5",
  },
  rpcTimeout: {
    flags: "--rpc-timeout <duration>",
    what: "how long to wait for a majority in one round trip",
    kind: duration,
    initial: "ttlMax / 15, from 50ms to 1s",
  },
  resourcesMax: {
    flags: "--resources-max <n>",
    what: "how many resources this member keeps",
    kind: count(1, 1e9),
    initial: "1000000",
    reload: true,
  },
  viewsFile: {
    flags: "--views-file <file>",
    what: "where this member keeps the list of members, which can then change",
    kind: path,
  },
  initialClusterState: {
    flags: "--initial-cluster-state <state>",
    what: "without a views file: new, or existing (no vote before it is added)",
    kind: { type: "choice", choices: ["new", "existing"] },
  },
  insecure: { flags: "--insecure", what: "allow plain TCP beyond loopback", kind: flag },
  "files.urls": {
    flags: "--nodes <urls>",
    what: "nodes to ask, http://host:port, separated by commas",
    kind: addressList,
    variable: "LEASEHOLD_NODES",
    initial: "those of files up",
  },
  "files.user": {
    flags: "--user <name:password>",
    what: "user and password for the nodes; at serve, those of clients",
    kind: text,
    isSecret: true,
    replaces: except(credentials, "files.user"),
  },
  "files.userFile": {
    flags: "--user-file <file>",
    what: "a file whose first line is the name:password of --user",
    kind: file,
    holdsSecret: true,
    replaces: except(credentials, "files.userFile"),
  },
  "files.users": {
    flags: "--users <file>",
    what: "users with passwords and rights; a line of files user for each",
    kind: file,
    holdsSecret: true,
    replaces: except(credentials, "files.users"),
  },
  "files.dir": {
    flags: "--dir <path>",
    what: "the node's own directory",
    kind: path,
  },
  "files.nodes": {
    flags: "--node <id=host:port>",
    what: "one node's address for the others, this one included; once for each",
    kind: addresses,
    variable: "LEASEHOLD_FILES_NODES",
  },
  "files.join": {
    flags: "--join",
    what: "for a node added with files node add; --node has it and some others",
    kind: flag,
  },
  "files.http": {
    flags: "--http <host:port>",
    what: "where the node serves WebDAV",
    kind: address,
    initial: "127.0.0.1:7480",
  },
  "files.s3": {
    flags: "--s3 <host:port>",
    what: "where the node serves the S3 API",
    kind: address,
    initial: "nowhere",
  },
  "files.httpCert": {
    flags: "--http-cert <file>",
    what: "certificate for clients of WebDAV and S3, PEM",
    kind: file,
    initial: "that of --tls-cert",
  },
  "files.httpKey": {
    flags: "--http-key <file>",
    what: "private key of --http-cert, PEM",
    kind: file,
    holdsSecret: true,
  },
  "files.blockSize": {
    flags: "--block-size <bytes>",
    what: "block size of new files, from 512 to 4194304",
    kind: count(512, 4_194_304),
    initial: "262144",
  },
  "files.rebalanceRate": {
    flags: "--rebalance-rate <bytes>",
    what: "bytes per second at which the node fetches contents that it is to have",
    kind: count(65_536, 1e12),
    initial: "33554432",
    reload: true,
  },
});

export type SettingKey = keyof typeof settings;

export const settingKeys = Object.keys(settings) as readonly SettingKey[];

export function settingOf(key: SettingKey): Setting {
  return settings[key];
}

export function isSettingKey(key: string): key is SettingKey {
  return Object.hasOwn(settings, key);
}

/** `tls.ca` is LEASEHOLD_TLS_CA, `ttlMax` LEASEHOLD_TTL_MAX. */
export function variableOf(key: SettingKey): string {
  const words = key.replace(".", "_").replaceAll(/[A-Z]/g, (letter) => `_${letter}`);
  return settingOf(key).variable ?? `LEASEHOLD_${words.toUpperCase()}`;
}
