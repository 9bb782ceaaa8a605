import type { Action } from "./action.js";

/** That of the watch that says when all is told (`watching.ts`). */
const ownId = 0;

/** Whether an id is asked for, or its turn comes, whose watch has ended as the revision where it begins was compacted. */
export function usesIdOfEnded(actions: readonly Action[]): boolean {
  const ended = new Set<number>();
  const taken = new Set([ownId]);
  let [next, compacted] = [0, 0];
  for (const { service, method, request, user } of actions) {
    if (method === "Compact") compacted = Math.max(compacted, Number(request["revision"] ?? 0));
    if (service !== "Watch" || user !== undefined) continue;
    const wanted = Number(request["watchId"] ?? 0);
    if (ended.has(wanted)) return true;
    if (method === "cancel") taken.delete(wanted);
    if (method !== "create" || isEmpty(request["key"], request["rangeEnd"])) continue;
    if (wanted !== 0 && taken.has(wanted)) continue;
    // Ids that the server chooses only grow.
    if (wanted === 0) while (taken.has(next) && !ended.has(next)) next += 1;
    const id = wanted === 0 ? next++ : wanted;
    if (ended.has(id)) return true;
    taken.add(id);
    if (Number(request["startRevision"] ?? Infinity) < compacted) ended.add(id);
  }
  return false;
}

function isEmpty(key: unknown, rangeEnd: unknown): boolean {
  const [from, to] = [key, rangeEnd].map((text) =>
    Buffer.from(String(text ?? ""), "base64").toString("latin1"),
  );
  return to !== "" && to !== "\0" && to! <= from!;
}
