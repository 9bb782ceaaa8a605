import { readFileSync } from "node:fs";
import { z } from "zod";
import { isRecord } from "../../common/json.js";
import type { MemberOptions } from "../../flease/tcp/types.js";
import { usageError } from "../common/failure.js";
import { type SecurityFlags, securityOf } from "../common/security-options.js";

const duration = z.union([z.number(), z.string()]);

/**
 * The settings of a member as a file gives them. What the values may be is checked where they are used, once.
 */
const configSchema = z.strictObject({
  id: z.string(),
  members: z.record(z.string(), z.string()),
  listen: z.string().optional(),
  cluster: z.string().optional(),
  ttlMax: duration.optional(),
  maxClockSkew: duration.optional(),
  clockRateError: z.number().optional(),
  rpcTimeout: duration.optional(),
  resourcesMax: z.number().optional(),
  insecure: z.boolean().optional(),
  tls: z.strictObject({ ca: z.string(), cert: z.string(), key: z.string() }).optional(),
  keyFile: z.string().optional(),
});

/** The settings of a member as the command line gives them. */
export interface PeerFlags extends SecurityFlags {
  readonly config?: string;
  readonly id?: string;
  readonly member?: readonly string[];
  readonly listen?: string;
  readonly cluster?: string;
  readonly ttlMax?: string;
  readonly maxClockSkew?: string;
  readonly rpcTimeout?: string;
  readonly insecure?: boolean;
}

/** The file's settings, each of them replaced by the flag that says otherwise. */
export function memberOptionsOf(flags: PeerFlags): MemberOptions {
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
    "insecure",
  ] as const) {
    if (rest[key] !== undefined) flagged[key] = rest[key];
  }
  if (member !== undefined) flagged["members"] = parseMembers(member);
  const security = securityOf(flags);
  // One way to prove who we are replaces another.
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

/** Leaves out what was not given, so that defaults are the library's alone. */
function check(value: object, source: string): MemberOptions {
  const result = configSchema.safeParse(value);
  if (!result.success) throw usageError(`${source}: ${result.error.issues.map(describeIssue).join("; ")}`);
  const given = Object.entries(result.data).filter(([, setting]) => setting !== undefined);
  return Object.fromEntries(given) as unknown as MemberOptions;
}

function describeIssue(issue: z.core.$ZodIssue): string {
  if (issue.code === "unrecognized_keys")
    return `unknown setting ${issue.keys.map((key) => `"${key}"`).join(", ")}`;
  const where = issue.path.map(String).join(".");
  return where === "" ? issue.message : `${where}: ${issue.message}`;
}
