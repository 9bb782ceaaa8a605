import { createHash } from "node:crypto";
import { isRecord } from "../../common/json.js";
import { LeaseholdError } from "../../lease/errors.js";
import { parseAddress } from "../../runtime/address.js";
import { canonicalSettings, fleaseSettings } from "../protocol/settings.js";
import type { FleaseSettings } from "../protocol/settings.js";

/** All that a participant has to know of its cluster. */
export interface Cluster {
  readonly name: string;
  readonly settings: FleaseSettings;
  /** 16 bytes in hexadecimal, over everything that must be alike everywhere. */
  readonly configHash: string;
  /** Of each member, in the order of `settings.members`. */
  readonly addresses: readonly string[];
}

/**
 * Puts together what a participant has to know.
 *
 * @throws LeaseholdError `INVALID_URL` for text that is no address, before anything listens: nothing would
 * report it later.
 */
export function defineCluster(
  name: string,
  settings: FleaseSettings,
  addresses: Record<string, string>,
): Cluster {
  for (const address of Object.values(addresses)) parseAddress(address);
  const configHash = createHash("sha256").update(canonicalSettings(settings)).digest("hex").slice(0, 32);
  return { name, settings, configHash, addresses: settings.members.map((id) => addresses[id]!) };
}

/** What a member tells a client: the cluster as JSON. */
export function writeClusterDocument(cluster: Cluster): string {
  const { settings } = cluster;
  return JSON.stringify({
    cluster: cluster.name,
    view: settings.view,
    cellSize: settings.cellSize,
    members: settings.members.map((id, index) => ({ id, address: cluster.addresses[index] })),
    ttlMaxMs: settings.ttlMaxMs,
    maxClockSkewMs: settings.maxClockSkewMs,
    clockRateError: settings.clockRateError,
    rpcTimeoutMs: settings.rpcTimeoutMs,
    configHash: cluster.configHash,
  });
}

/**
 * Reads what a member said of its cluster, and checks that this version understands it as the member does.
 *
 * @throws LeaseholdError `CONFIG_MISMATCH`, `INVALID_CONFIG`.
 */
export function readClusterDocument(text: string): Cluster {
  const document = parse(text);
  const members = list(document["members"]).map((member) => record(member));
  const settings = fleaseSettings({
    members: members.map((member) => string(member["id"])),
    view: number(document["view"]),
    cellSize: number(document["cellSize"]),
    ttlMaxMs: number(document["ttlMaxMs"]),
    maxClockSkewMs: number(document["maxClockSkewMs"]),
    clockRateError: number(document["clockRateError"]),
    rpcTimeoutMs: number(document["rpcTimeoutMs"]),
  });
  const addresses = Object.fromEntries(
    members.map((member) => [string(member["id"]), string(member["address"])]),
  );
  const cluster = defineCluster(string(document["cluster"]), settings, addresses);
  if (cluster.configHash !== document["configHash"]) {
    throw new LeaseholdError(
      "CONFIG_MISMATCH",
      `the member's settings hash to ${String(document["configHash"])} there and to ${cluster.configHash} here: the two run different versions`,
    );
  }
  return cluster;
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    return record(JSON.parse(text));
  } catch (cause) {
    if (cause instanceof LeaseholdError) throw cause;
    throw new LeaseholdError("CONFIG_MISMATCH", "the member's description of its cluster is not JSON", {
      cause,
    });
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : misfit("an object", value);
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : misfit("a list", value);
}

function string(value: unknown): string {
  return typeof value === "string" ? value : misfit("text", value);
}

function number(value: unknown): number {
  return typeof value === "number" ? value : misfit("a number", value);
}

function misfit(wanted: string, value: unknown): never {
  throw new LeaseholdError(
    "CONFIG_MISMATCH",
    `the member's description of its cluster has ${typeof value} where ${wanted} should be`,
  );
}
