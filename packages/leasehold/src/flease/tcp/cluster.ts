import { createHash } from "node:crypto";
import { isRecord } from "../../common/json.js";
import { LeaseholdError } from "../../lease/errors.js";
import { isAddress, parseAddress } from "../../runtime/address.js";
import type { Cluster } from "../views/cluster.js";
import { readPublishedView } from "../views/document.js";
import { canonicalSettings, fleaseSettings, memberIdsMax } from "../protocol/settings.js";
import type { FleaseSettings } from "../protocol/settings.js";

/**
 * Combines settings and addresses into a cluster.
 *
 * @throws LeaseholdError `INVALID_URL` for an invalid address. Checked here because nothing would report it
 * later.
 */
export function defineCluster(
  name: string,
  settings: FleaseSettings,
  addresses: Record<string, string>,
): Cluster {
  for (const address of Object.values(addresses)) parseAddress(address);
  const configHash = createHash("sha256").update(canonicalSettings(settings)).digest("hex").slice(0, 32);
  const members = [...settings.members];
  const places = members.map((id) => addresses[id]!);
  const learn = (id: string, address: string) => {
    const index = members.indexOf(id);
    if (index === -1 && members.length >= memberIdsMax) return false;
    if (index === -1) members.push(id);
    places[index === -1 ? members.length - 1 : index] = address;
    return true;
  };
  const foundedBy = members.length;
  return {
    name,
    settings: { ...settings, members },
    configHash,
    addresses: places,
    foundedBy,
    learn,
  };
}

/** Encodes the cluster as JSON, which members send to clients. */
export function writeClusterDocument(cluster: Cluster, current: object): string {
  const { settings } = cluster;
  // The hash covers the founding members.
  const first = settings.members.slice(0, cluster.foundedBy);
  return JSON.stringify({
    cluster: cluster.name,
    view: settings.view,
    cellSize: settings.cellSize,
    members: first.map((id, index) => ({ id, address: cluster.addresses[index] })),
    ttlMaxMs: settings.ttlMaxMs,
    maxClockSkewMs: settings.maxClockSkewMs,
    clockRateError: settings.clockRateError,
    rpcTimeoutMs: settings.rpcTimeoutMs,
    configHash: cluster.configHash,
    current,
  });
}

/**
 * Decodes a member's description of the cluster, and checks that this version understands it the same way.
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
  const current = document["current"];
  return current === undefined ? cluster : { ...cluster, current: readPublishedView(current, isAddress) };
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
