import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Auth } from "../../../packages/leasehold/src/etcd/gen/etcd/auth_pb.js";
import { Cluster, Maintenance } from "../../../packages/leasehold/src/etcd/gen/etcd/cluster_pb.js";
import { KV, Lease, Watch } from "../../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { Election } from "../../../packages/leasehold/src/etcd/gen/etcd/v3election_pb.js";
import { Lock } from "../../../packages/leasehold/src/etcd/gen/etcd/v3lock_pb.js";

export const services = { Auth, Cluster, Election, KV, Lease, Lock, Maintenance, Watch } as const;
export type ServiceName = keyof typeof services;

/**
 * One request, as the JSON of its message, so that it can be printed and made smaller. Revisions count from where
 * the sequence began. `@name` stands for what each server has told by that name: an id, or who leads; `@largeN` for
 * a value of so many bytes. `Lease.runOut` is no request of etcd's: it grants a lease, hangs keys on it and waits
 * until it has run out. Nor is `Lock.giveUp`: who holds a lock asks for it again, and waits for no answer.
 */
export interface Action {
  readonly service: ServiceName;
  readonly method: string;
  readonly request: JsonObject;
  /** The user whose token comes with the request. */
  readonly user?: string;
  /** The request may wait at the server while others follow. Its answer is kept under this name. */
  readonly waitsAs?: string;
}

/** Some sequences enable rights. */
export interface Sequence {
  readonly withRights: boolean;
  readonly actions: readonly Action[];
}

export const base64 = (text: string): string => Buffer.from(text).toString("base64");

export function methodOf(service: ServiceName, name: string) {
  const found = services[service].methods.find((method) => method.name === name);
  if (found === undefined) throw new TypeError(`${service} has no ${name}`);
  return found;
}

/** The same JSON with every value that `change` knows replaced; `undefined` removes the value. */
export function mapped(
  json: JsonValue,
  change: (value: JsonValue, key: string) => JsonValue | undefined,
  key = "",
): JsonValue | undefined {
  const changed = change(json, key);
  if (changed !== json || typeof json !== "object" || json === null) return changed;
  if (Array.isArray(json)) return json.map((each) => mapped(each, change, key) ?? null);
  const entries = Object.entries(json).map(([name, value]) => [name, mapped(value, change, name)] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as JsonObject;
}

const bytesFields = new Set(["key", "rangeEnd", "value", "name", "keys"]);

/** For humans: bytes as text. */
export function shown(json: JsonValue): string {
  return JSON.stringify(json, (key, value: unknown) =>
    typeof value === "string" && bytesFields.has(key) && !value.startsWith("@")
      ? Buffer.from(value, "base64").toString()
      : value,
  );
}

export function shownAction({ service, method, request, user, waitsAs }: Action): string {
  const who = user === undefined ? "" : `${user || "nobody"}: `;
  const label = waitsAs === undefined ? "" : ` as ${waitsAs}`;
  // Names of users and roles are not bytes.
  return `${who}${service}.${method} ${service === "Auth" ? JSON.stringify(request) : shown(request)}${label}`;
}
