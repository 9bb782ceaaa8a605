import type { Protocol } from "../effects.js";
import { lookAtClocks } from "../effects.js";
import type { DeltaRecord } from "../record/record.js";
import { elapsedMs } from "../../common/both-clocks.js";
import { type MayReplace, numberAfter } from "./register.js";
import type { Seen, Site } from "./site.js";
import { sameStamp } from "../record/stamp.js";
import { Held, Idle } from "./states.js";

/**
 * Renewal where the bound on delays always holds (ND): write a fresh timestamp; done. A write that took δ or
 * longer proves that the bound does not hold: the lease is lost at once.
 */
export function* renewND(site: Site, held: Held): Protocol<Held | Idle> {
  const begun = (yield lookAtClocks).now;
  if (held.remainingMs(begun) === 0) return new Idle("lost");
  let record = held.record;
  const written = yield* site.register.write(
    (number, seen) => (record = site.renewed(record, number, seen)),
    begun,
  );
  if ((yield lookAtClocks).cancelled) return new Idle("cancelled", record);
  if (written.kind !== "done" || elapsedMs(begun, written.ended) >= site.delayMs) return new Idle("lost");
  return stillHeld(new Held(record, begun), held, written.ended);
}

/**
 * Fig. 5, renewal where the bound holds only eventually (◇ND): read; if it is not mine, false; write a fresh
 * timestamp; delay(2δ); read; true if and only if it is what I wrote. It amends the figure: it ignores a
 * record that is at too few stores to be a successor's.
 */
export function* renewEventuallyND(site: Site, held: Held): Protocol<Held | Idle> {
  const begun = (yield lookAtClocks).now;
  if (held.remainingMs(begun) === 0) return new Idle("lost");
  const isNoSuccessor = (stores: Seen["stores"]) => site.isNoSuccessor(stores, held.record);
  const cur = yield* site.register.readByHolder(begun, isNoSuccessor);
  if (cur.cancelled) return new Idle("cancelled");
  if (cur.kind === "unanswered" || !isNoSuccessor(cur.stores)) return new Idle("lost");
  const ts = site.renewed(held.record, numberAfter(cur), cur);
  const mayReplace: MayReplace<DeltaRecord> = (content, next) => site.mayRenewOver(content, cur, next);
  const written = yield* site.register.sendQuietly(ts, mayReplace, cur.ended);
  const slow = elapsedMs(begun, cur.ended) >= site.delayMs;
  if (written.kind !== "done" || slow || elapsedMs(cur.ended, written.ended) >= site.delayMs)
    return new Idle("lost");
  const pause = yield { kind: "delay", delayMs: site.pauseMs(cur) };
  if (pause.cancelled) return new Idle("cancelled", ts);
  const isMine = (stores: Seen["stores"]) => site.isStillMine(stores, ts);
  const again = yield* site.register.readByHolder(pause.now, isMine);
  if (again.cancelled) return new Idle("cancelled", ts);
  if (
    again.kind === "unanswered" ||
    !isMine(again.stores) ||
    elapsedMs(pause.now, again.ended) >= site.delayMs
  )
    return new Idle("lost");
  return stillHeld(new Held(ts, cur.ended), held, again.ended);
}

/**
 * Frees exactly the record of `held`, after its holder has stopped, and a record that a `cancelled` renewal
 * may have left. A successor's record is neither touched nor superseded, even if this write arrives late.
 * Best effort. A reader's record stays, because others may hold under it.
 */
export function* release(site: Site, held: Held, cancelled?: Idle): Protocol<Idle> {
  const begun = (yield lookAtClocks).now;
  const left = cancelled?.left ?? held.record;
  const isOwn = (content: DeltaRecord) => sameStamp(content, left) || sameStamp(content, held.record);
  if (site.isShared) return new Idle("released");
  yield* site.register.send(site.freed(left), isOwn, begun);
  return new Idle("released");
}

/** A hold that expired while it was being renewed is lost: another process may have seen it end. */
function stillHeld(renewed: Held, before: Held, now: Held["begun"]): Held | Idle {
  const wasHeld = before.remainingMs(now) > 0;
  return wasHeld && renewed.remainingMs(now) > 0 ? renewed : new Idle("lost");
}
