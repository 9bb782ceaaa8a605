import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Action } from "./action.js";
import { queueKeyOf } from "./waiting.js";
import { usesIdOfEnded } from "./watch-ids.js";

type Actions = readonly Action[];

/**
 * Deliberate differences between our server and Debian's etcd. `docs/core-compatibility.md` has the reasons.
 */
const known: Readonly<Record<string, (actions: Actions) => boolean>> = {
  "etcd cuts, then sorts": (actions) => ofKeys(actions).some(({ request }) => holds(request, isCutFirst)),
  "a deletion from a key on, and a put there": (actions) =>
    actions.some(({ method, request }) => method === "Txn" && putsWhatItDeletes(request)),
  "a lease that the server gives to who waits": (actions) =>
    actions.some(({ waitsAs, request }) => waitsAs !== undefined && request["lease"] === undefined),
  "the id of a watch that was compacted": usesIdOfEnded,
  "the revision that was compacted last": watchesWhatWasCompacted,
  "a wrong token where etcd does not look at it": (actions) =>
    actions.some(
      ({ method, user }) => mayBeWrong.test(user ?? "") && (unseen.has(method) || unseenLeases.has(method)),
    ),
  "Hash without root's rights": (actions) =>
    actions.some(({ method, user = "root" }) => method === "Hash" && user !== "root"),
  "an address of a learner": changesLearner,
  "what is no address": (actions) =>
    actions.some(({ method, request }) => method === "MemberUpdate" && !hasAddresses(request)),
  "a member that is added twice at once": addsAgain,
  "a voter that does not run": (actions) =>
    actions.some(({ method, request }) => method === "MemberAdd" && request["isLearner"] !== true),
  "the alarm NONE": (actions) =>
    actions.some(({ method, request }) => method === "Alarm" && raisesNone(request)),
  "a put inside while space is short": putsInsideWithoutSpace,
  "a waiter whose lease ends": endsWhatWaits,
  "rights in a transaction": (actions) =>
    actions.some(({ method, request, user }) => method === "Txn" && needsMoreRights(request, user)),
  "rights of a watch from a key on": (actions) =>
    actions.some(
      ({ service, request, user }) =>
        service === "Watch" && isSomebody(user) && request["rangeEnd"] === fromKeyOn,
    ),
  "rights to the keys of a lease": (actions) =>
    actions.some(
      ({ method, request, user }) =>
        method === "LeaseTimeToLive" && isSomebody(user) && request["keys"] === true,
    ),
  "leases and compaction by nobody": (actions) =>
    actions.some(({ method, user }) => user === "" && (ofSomebody.has(method) || unseenLeases.has(method))),
};

export const knownDifferences: readonly string[] = Object.keys(known);

/** The first known difference that these requests would meet. */
export function knownDifference(actions: Actions): string | undefined {
  return Object.entries(known).find(([, isMet]) => isMet(actions))?.[0];
}

/** A user who may have no token, or no good one, gives a wrong one. */
const mayBeWrong = /^(?:wrong|u2)$/;

/** What etcd answers whoever asks. */
const unseen = new Set(["MemberList", "Status"]);
const unseenLeases = new Set(["LeaseLeases", "LeaseTimeToLive"]);

/** What etcd does for those, too, who have given no user. */
const ofSomebody = new Set(["LeaseGrant", "LeaseRevoke", "Compact"]);

const fromKeyOn = "AA==";

/** Who has some rights. */
function isSomebody(user = "root"): boolean {
  return /^u\d$/.test(user);
}

function ofKeys(actions: Actions): Actions {
  return actions.filter(({ service }) => service === "KV");
}

/** A target, no order and a limit: with bounds etcd reads everything first. */
function isCutFirst({ limit, rangeEnd, sortTarget, sortOrder, countOnly, ...more }: JsonObject): boolean {
  const isCut = limit !== undefined && rangeEnd !== undefined && countOnly !== true;
  const hasBounds = Object.keys(more).some((name) => /^(?:min|max)/.test(name));
  return isCut && !hasBounds && sortTarget !== undefined && sortOrder === undefined;
}

/**
 * etcd does not notice that a deletion of an open-ended range may delete what a put in the same transaction
 * writes.
 */
function putsWhatItDeletes(request: JsonObject): boolean {
  const put: string[] = [];
  const deletedFrom: string[] = [];
  holds(request, ({ requestPut, requestDeleteRange }) => {
    if (requestPut !== undefined) put.push(keyOf(requestPut));
    if ((requestDeleteRange as JsonObject | undefined)?.["rangeEnd"] === fromKeyOn)
      deletedFrom.push(keyOf(requestDeleteRange!));
    return false;
  });
  return deletedFrom.some((from) => put.some((key) => key >= from));
}

function keyOf(request: JsonValue): string {
  return Buffer.from(String((request as JsonObject)["key"] ?? ""), "base64").toString("latin1");
}

/** A watch of etcd 3.4 that starts at the last compacted revision misses deletions. */
function watchesWhatWasCompacted(actions: Actions): boolean {
  return actions.some(({ service, request }, at) => {
    if (service !== "Watch" || request["startRevision"] === undefined) return false;
    if (JSON.stringify(request["filters"] ?? "").includes("NODELETE")) return false;
    return actions
      .slice(0, at)
      .some(
        (before) => before.method === "Compact" && before.request["revision"] === request["startRevision"],
      );
  });
}

/** In etcd 3.4 a learner whose address changes is no longer a learner. */
function changesLearner(actions: Actions): boolean {
  return actions.some(
    ({ method, request }, at) =>
      method === "MemberUpdate" &&
      String(request["ID"]).startsWith("@added") &&
      actions.slice(0, at).some((before) => before.method === "MemberAdd"),
  );
}

function hasAddresses({ peerURLs }: JsonObject): boolean {
  const urls = Array.isArray(peerURLs) ? peerURLs : [];
  return urls.length > 0 && urls.every((url) => String(url).startsWith("http://"));
}

/**
 * In etcd a member's id is a hash of its addresses and the current second, so within one second the same
 * member is not added twice.
 */
function addsAgain(actions: Actions): boolean {
  const added = actions
    .filter(({ method, request }) => method === "MemberAdd" && hasAddresses(request))
    .map(({ request }) => JSON.stringify(request["peerURLs"]));
  return new Set(added).size < added.length;
}

/** etcd 3.4 raises `NONE`, and disarming it for member 0 ends it: there is no key under which to store it. */
function raisesNone({ action, alarm }: JsonObject): boolean {
  return action === "ACTIVATE" && (alarm ?? "NONE") === "NONE";
}

/** While space is short, etcd 3.4 counts only the puts of the outer transaction. */
function putsInsideWithoutSpace(actions: Actions): boolean {
  const alarms = new Set<JsonValue>();
  for (const { method, request } of actions) {
    const { action, alarm, memberID = "0" } = request;
    if (method === "Alarm" && alarm === "NOSPACE" && action === "ACTIVATE") alarms.add(memberID);
    if (method === "Alarm" && alarm === "NOSPACE" && action === "DEACTIVATE") alarms.delete(memberID);
    if (method !== "Txn" || alarms.size === 0) continue;
    const outer = operationsOf(request);
    const isPut = ({ requestPut }: JsonObject) => requestPut !== undefined;
    if (!outer.some(isPut) && holds(request, isPut)) return true;
  }
  return false;
}

/**
 * If a waiter's lease or key ends, the waiter gets etcd 3.4's lock later; so only the first caller may ask
 * for a name.
 */
function endsWhatWaits(actions: Actions): boolean {
  const names = new Set<JsonValue | undefined>();
  const leases = new Set<JsonValue | undefined>();
  const keys = new Set<string>();
  for (const { method, waitsAs, request } of actions) {
    if (method === "LeaseRevoke" && leases.has(request["ID"])) return true;
    if ((method === "Unlock" || method === "DeleteRange") && keys.has(keyOf(request))) return true;
    const { lease, name } = request;
    if (waitsAs === undefined) continue;
    if (names.has(name)) {
      leases.add(lease!);
      keys.add(queueKeyOf(request));
    }
    names.add(name);
  }
  return false;
}

/** etcd 3.4 does not check nested transactions, nor puts that keep the earlier value or lease. */
function needsMoreRights(request: JsonObject, user: string | undefined): boolean {
  if (user !== "" && !isSomebody(user)) return false;
  return operationsOf(request).some(({ requestPut, requestTxn }) => {
    const { lease, prevKv } = (requestPut ?? {}) as JsonObject;
    return requestTxn !== undefined || (user !== "" && (lease !== undefined || prevKv !== undefined));
  });
}

function operationsOf({ success = [], failure = [] }: JsonObject): JsonObject[] {
  return [...(success as JsonObject[]), ...(failure as JsonObject[])];
}

function holds(json: JsonValue, isSo: (found: JsonObject) => boolean): boolean {
  if (typeof json !== "object" || json === null) return false;
  if (!Array.isArray(json) && isSo(json)) return true;
  return Object.values(json).some((value) => holds(value, isSo));
}
