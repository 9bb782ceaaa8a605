import { faults } from "#delta-faults";
import type { Protocol } from "../effects.js";
import { lookAtClocks } from "../effects.js";
import type { DeltaRecord } from "../record.js";
import { elapsedMs } from "../tenure.js";
import { numberAfter } from "./register.js";
import type { Site } from "./site.js";
import { sameStamp } from "../stamp.js";
import { Held, Idle } from "./states.js";

/**
 * Renewal where the bound on delays always holds (ND): write a fresh timestamp; done. A write that took δ or longer says
 * that the bound does not hold: the lease is lost at once.
 */
export function* renewND(site: Site, held: Held): Protocol<Held | Idle> {
  const begun = (yield lookAtClocks).now;
  if (held.remainingMs(begun) === 0) return new Idle("lost");
  let record = held.record;
  const written = yield* site.register.write(
    (number, seen) => (record = site.renewed(record, number, seen)),
    begun,
  );
  if (written.kind !== "done" || elapsedMs(begun, written.ended) >= site.delayMs) return new Idle("lost");
  return stillHeld(new Held(record, site.holdsFrom(begun, written.ended)), held, written.ended);
}

/**
 * Fig. 5, renewal where the bound holds only eventually (◇ND): read; if it is not mine, false; write a fresh timestamp;
 * delay(2δ); read; true if and only if it is what I wrote.
 */
export function* renewEventuallyND(site: Site, held: Held): Protocol<Held | Idle> {
  const begun = (yield lookAtClocks).now;
  if (held.remainingMs(begun) === 0) return new Idle("lost");
  const cur = yield* site.register.read(begun);
  if (cur.kind === "unanswered" || !site.isNoSuccessor(cur.value, held.record)) return new Idle("lost");
  const ts = site.renewed(held.record, numberAfter(cur), cur.value);
  const mayReplace = (content: DeltaRecord) => site.mayReplace(content, cur.value, ts);
  const written = yield* site.register.send(ts, mayReplace, cur.ended);
  const slow = elapsedMs(begun, cur.ended) >= site.delayMs;
  if (written.kind !== "done" || slow || elapsedMs(cur.ended, written.ended) >= site.delayMs)
    return new Idle("lost");
  const pause = yield { kind: "delay", delayMs: site.pauseMs(cur.value) };
  const again = yield* site.register.read(pause.now);
  const isMine = again.kind === "read" && site.isMine(again.value, ts);
  if (!isMine || elapsedMs(pause.now, again.ended) >= site.delayMs) return new Idle("lost");
  return stillHeld(new Held(ts, site.holdsFrom(cur.ended, again.ended)), held, again.ended);
}

/**
 * Frees the very record that `held` stands for, after its holder has stopped: nothing that a successor has written is
 * touched or outdone, even if this comes late. Best effort.
 */
export function* release(site: Site, held: Held): Protocol<Idle> {
  const begun = (yield lookAtClocks).now;
  if (faults.releaseOverSuccessor) {
    yield* site.register.write((number) => ({ ...site.freed(held.record), number }), begun);
  } else {
    yield* site.register.send(site.freed(held.record), (content) => sameStamp(content, held.record), begun);
  }
  return new Idle("released");
}

/** A hold that ran out while it was being renewed is lost: somebody may have seen it end. */
function stillHeld(renewed: Held, before: Held, now: Held["begun"]): Held | Idle {
  const wasHeld = before.remainingMs(now) > 0 || faults.holdFromReturn;
  return wasHeld && renewed.remainingMs(now) > 0 ? renewed : new Idle("lost");
}
