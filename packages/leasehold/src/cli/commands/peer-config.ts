import { readFileSync } from "node:fs";
import { isRecord } from "../../common/json.js";
import type { MemberOptions } from "../../flease/tcp/types.js";
import { type LogFormat, type LogLevel, logFormats, logLevels } from "../../runtime/event-log.js";
import type { LogFlags } from "../common/log-options.js";
import { usageError } from "../common/failure.js";
import { type SecurityFlags, securityOf } from "../common/security-options.js";

/** The errors in a value, with their path; empty if it is valid. */
type Check = (value: unknown, path: string) => readonly string[];

const expected =
  (what: string, allows: (value: unknown) => boolean): Check =>
  (value, path) =>
    allows(value) ? [] : [`${path}: expected ${what}`];

const text = expected("text", (value) => typeof value === "string");
const number = expected("a number", (value) => typeof value === "number");
const flag = expected("true or false", (value) => typeof value === "boolean");
const duration = expected("a duration, as text or in ms", (value) =>
  /^(?:string|number)$/.test(typeof value),
);

const oneOf = (choices: readonly string[]): Check =>
  expected(choices.join(", "), (value) => choices.some((choice) => choice === value));

const texts: Check = (value, path) =>
  isRecord(value)
    ? Object.entries(value).flatMap(([key, entry]) => text(entry, `${path}.${key}`))
    : [`${path}: expected an object`];

/** Requires each key of `required`, and allows no others than these and the keys of `optional`. */
const shape =
  (required: Readonly<Record<string, Check>>, optional: Readonly<Record<string, Check>> = {}): Check =>
  (value, path) => {
    if (!isRecord(value)) return [`${path}: expected an object`];
    const at = (key: string) => (path === "" ? key : `${path}.${key}`);
    const checks = new Map(Object.entries({ ...required, ...optional }));
    const unknown = Object.keys(value).filter((key) => !checks.has(key));
    const missing = Object.keys(required).filter((key) => value[key] === undefined);
    const wrong = [...checks].flatMap(([key, check]) =>
      value[key] === undefined ? [] : check(value[key], at(key)),
    );
    return [
      ...unknown.map((key) => `unknown setting "${at(key)}"`),
      ...missing.map((key) => `${at(key)}: is missing`),
      ...wrong,
    ];
  };

/** The settings of a member in a file. Values are validated once, where they are used. */
const checkConfig = shape(
  { id: text, members: texts },
  {
    listen: text,
    cluster: text,
    ttlMax: duration,
    maxClockSkew: duration,
    clockRateError: number,
    rpcTimeout: duration,
    resourcesMax: number,
    viewsFile: text,
    initialClusterState: text,
    insecure: flag,
    metricsAddress: text,
    logFormat: oneOf(logFormats),
    logLevel: oneOf(logLevels),
    tls: shape({ ca: text, cert: text, key: text }),
    keyFile: text,
  },
);

/** The settings of a member on the command line. */
export interface PeerFlags extends SecurityFlags, LogFlags {
  readonly config?: string;
  readonly id?: string;
  readonly member?: readonly string[];
  readonly listen?: string;
  readonly cluster?: string;
  readonly ttlMax?: string;
  readonly maxClockSkew?: string;
  readonly rpcTimeout?: string;
  readonly viewsFile?: string;
  readonly initialClusterState?: string;
  readonly insecure?: boolean;
  readonly metricsAddress?: string;
}

export interface PeerOptions extends MemberOptions {
  /** Where metrics and health are served, `host:port`. */
  readonly metricsAddress?: string;
  readonly logFormat?: LogFormat;
  readonly logLevel?: LogLevel;
}

/** The file's settings, overridden by flags. */
export function memberOptionsOf(flags: PeerFlags): PeerOptions {
  const { config, member, ...rest } = flags;
  const given = config === undefined ? {} : readConfig(config);
  const flagged: Record<string, unknown> = {};
  for (const key of [
    "id",
    "listen",
    "cluster",
    "ttlMax",
    "maxClockSkew",
    "rpcTimeout",
    "viewsFile",
    "initialClusterState",
    "insecure",
    "metricsAddress",
    "logFormat",
    "logLevel",
  ] as const) {
    if (rest[key] !== undefined) flagged[key] = rest[key];
  }
  if (member !== undefined) flagged["members"] = parseMembers(member);
  const security = securityOf(flags);
  // One way of authentication replaces another.
  if (Object.keys(security).length > 0) Object.assign(given, { tls: undefined, keyFile: undefined });
  const merged = { ...given, ...flagged, ...security };
  if (!("id" in merged)) throw usageError("which member is this? give --id, or a file with --config");
  if (!("members" in merged))
    throw usageError("who are the members? give --member id=host:port once for each");
  return check(merged, config ?? "the command line");
}

function readConfig(path: string): object {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw usageError(`--config ${path}: ${(error as Error).message}`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw usageError(`${path} is not JSON: ${(error as Error).message}`);
  }
  if (!isRecord(value)) throw usageError(`${path}: the settings must be one JSON object`);
  return value;
}

function parseMembers(entries: readonly string[]): Record<string, string> {
  const members: Record<string, string> = {};
  for (const entry of entries) {
    const match = /^([^=]+)=(.+)$/.exec(entry);
    if (match === null)
      throw usageError(`--member ${entry}: it should be id=host:port, such as a=10.0.0.1:7400`);
    const [, id = "", address = ""] = match;
    if (id in members) throw usageError(`--member ${entry}: ${id} was given already`);
    members[id] = address;
  }
  return members;
}

/** Omits missing settings, so that defaults are the library's alone. */
function check(value: object, source: string): MemberOptions {
  const wrong = checkConfig(value, "");
  if (wrong.length > 0) throw usageError(`${source}: ${wrong.join("; ")}`);
  const given = Object.entries(value).filter(([, setting]) => setting !== undefined);
  return Object.fromEntries(given) as unknown as MemberOptions;
}
