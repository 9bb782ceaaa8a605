import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Action } from "./action.js";

/** Where ours differs from the etcd that Debian has on purpose: `docs/core.md` has the reasons. */
export function isKnownToDiffer(actions: readonly Action[]): boolean {
  return (
    actions.some(({ service, request }) => service === "KV" && holds(request, isCutBeforeSorted)) ||
    actions.some(({ method, request }) => method === "Txn" && holds(request, deletesFromKeyOn)) ||
    actions.some(({ waitsAs, request }) => waitsAs !== undefined && request["lease"] === undefined) ||
    usesIdOfWhatEnded(actions) ||
    actions.some(
      ({ service, user }) => user === "wrong" && (service === "Cluster" || service === "Maintenance"),
    ) ||
    actions.some(({ method, user = "root" }) => method === "Hash" && user !== "root") ||
    updatesLearner(actions) ||
    addsAgain(actions) ||
    actions.some(({ method, request }) => method === "Alarm" && raisesOther(request)) ||
    actions.some(({ method, request }) => method === "MemberAdd" && request["isLearner"] !== true) ||
    actions.some(({ method, request }) => method === "MemberUpdate" && !hasAddresses(request)) ||
    watchesWhatWasCompacted(actions) ||
    endsWhatWaits(actions)
  );
}

/** A target, no order and a limit: etcd cuts first. */
function isCutBeforeSorted({ limit, sortTarget, sortOrder }: JsonObject): boolean {
  return limit !== undefined && sortTarget !== undefined && sortOrder === undefined;
}

/** One whose address changes is no learner any more for etcd 3.4. */
function updatesLearner(actions: readonly Action[]): boolean {
  return actions.some(
    ({ method, request }) => method === "MemberUpdate" && String(request["ID"]).startsWith("@added"),
  );
}

/** At etcd the id of a member is a hash of its addresses and of the second: nobody can be added twice in one. */
function addsAgain(actions: readonly Action[]): boolean {
  const added = actions
    .filter(({ method }) => method === "MemberAdd")
    .map(({ request }) => JSON.stringify(request["peerURLs"]));
  return new Set(added).size < added.length;
}

/** etcd 3.4 raises `NONE`, too, and that of member 0 ends it: there is no key to store it under. */
function raisesOther({ action, alarm }: JsonObject): boolean {
  return action === "ACTIVATE" && alarm !== "NOSPACE";
}

/** etcd takes an address at which no member can be reached, and none. */
function hasAddresses({ peerURLs }: JsonObject): boolean {
  const urls = Array.isArray(peerURLs) ? peerURLs : [];
  return urls.length > 0 && urls.every((url) => String(url).startsWith("http://"));
}

/** That it may hit what a put beside it writes, etcd does not notice. */
function deletesFromKeyOn({ requestDeleteRange }: JsonObject): boolean {
  return (requestDeleteRange as JsonObject | undefined)?.["rangeEnd"] === "AA==";
}

/** From the revision that was compacted last etcd 3.4 misses deletions. */
function watchesWhatWasCompacted(actions: readonly Action[]): boolean {
  const compacted = new Set<JsonValue | undefined>();
  for (const { method, request } of actions) if (method === "Compact") compacted.add(request["revision"]);
  return actions.some(
    ({ service, request }) =>
      service === "Watch" &&
      request["startRevision"] !== undefined &&
      compacted.has(request["startRevision"]),
  );
}

/** A watch that ends as its revision was compacted keeps its id at etcd 3.4: it is not free, and can be cancelled again. */
function usesIdOfWhatEnded(actions: readonly Action[]): boolean {
  const revisions = actions.map(({ method, request }) =>
    method === "Compact" ? numberOf(request["revision"]) : 0,
  );
  const compacted = Math.max(...revisions);
  const watches = actions.filter(({ service }) => service === "Watch");
  return (
    watches.some(({ request }) => numberOf(request["startRevision"] ?? compacted) < compacted) &&
    watches.some(({ method, request }) => method === "cancel" || request["watchId"] !== undefined)
  );
}

function numberOf(json: JsonValue | undefined): number {
  return Number(json ?? 0);
}

/** Who waits, and whose lease ends, gets the lock of etcd 3.4 later: only the first who asks for a name may lose its. */
function endsWhatWaits(actions: readonly Action[]): boolean {
  const names = new Set<JsonValue | undefined>();
  const waiting = new Set<JsonValue | undefined>();
  for (const { waitsAs, request } of actions) {
    if (waitsAs === undefined) continue;
    if (names.has(request["name"])) waiting.add(request["lease"]);
    names.add(request["name"]);
  }
  return actions.some(({ method, request }) => method === "LeaseRevoke" && waiting.has(request["ID"]));
}

function holds(json: JsonValue, isSo: (found: JsonObject) => boolean): boolean {
  if (typeof json !== "object" || json === null) return false;
  if (!Array.isArray(json) && isSo(json)) return true;
  return Object.values(json).some((value) => holds(value, isSo));
}
