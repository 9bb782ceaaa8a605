import { faults } from "#delta-faults";
import type { Protocol } from "../effects.js";
import { lookAtClocks } from "../effects.js";
import type { DeltaRecord } from "../record.js";
import { elapsedMs } from "../tenure.js";
import type { Seen, Site } from "./site.js";
import { sameStamp } from "../stamp.js";
import { Held, Idle } from "./states.js";

/**
 * Fig. 2: waits until nobody holds the register, and takes it. Ends with a hold or when it is cancelled. The repairs
 * beyond the figure: whoever waits does so by the Δ and δ that are written in the record, operations are timed
 * (`claim`), and where stores compare and set a free register is taken without the first wait.
 */
export function* contend(site: Site, _from: Idle): Protocol<Held | Idle> {
  let cur: Seen | undefined = yield* readAnswered(site); //                      1  cur ← read(x)
  let prev: Seen;
  let backOffMs = 0;
  while (cur !== undefined) {
    do {
      prev = cur; //                                                             4  prev ← cur
      const waitMs = backOffMs + (site.maySkipWait(prev) ? 0 : site.waitMs(prev.value));
      if (waitMs > 0) {
        const { cancelled } = yield { kind: "delay", delayMs: waitMs }; // 5  delay(Δ + 6δ)
        if (cancelled) return new Idle("cancelled");
        cur = yield* readAnswered(site); //                                      6  cur ← read(x)
        if (cur === undefined) return new Idle("cancelled");
      }
    } while (!sameStamp(cur.value, prev.value)); //                              7  until cur = prev
    const held = yield* claim(site, cur); //                                     8 to 12
    if (held.state === "hold" || held.because === "cancelled") return held;
    // Those who wait from the same moment would meet again and again.
    backOffMs = site.backOffMs();
    cur = yield* readAnswered(site);
  }
  return new Idle("cancelled");
}

/**
 * Fig. 2, lines 8 to 12, for whoever has just found the register unchanged for long enough. Line 9 writes over nothing but
 * what `cur` saw where stores compare and set. When the time from the start of that read to the end of the write reaches
 * 2δ, the pause of another contender may have been too short to see this write: the claim has failed.
 */
export function* claim(site: Site, cur: Seen): Protocol<Held | Idle> {
  const x = site.register;
  const ts = site.recordAfter(cur); //                                           8  ts ← a unique timestamp
  const begun = cur.ended;
  const written = yield* x.send(ts, (content) => site.mayReplace(content, cur.value, ts), begun); // 9  write(x, ts)
  const inTime = elapsedMs(cur.begun, written.ended) < 2 * site.delayMs;
  if (written.kind !== "done" || !inTime) return yield* withdraw(site, ts, "refused");
  const pause = yield { kind: "delay", delayMs: site.pauseMs(cur.value) }; //   10  delay(2δ)
  if (pause.cancelled) return yield* withdraw(site, ts, "cancelled");
  if (faults.noReRead) return new Held(ts, site.holdsFrom(begun, pause.now));
  const again = yield* x.read(pause.now); //                                    11  cur ← read(x)
  if (again.cancelled) return yield* withdraw(site, ts, "cancelled");
  const isMine = again.kind === "read" && site.isMine(again.value, ts); //        12  until cur = ts
  if (!isMine || elapsedMs(again.begun, again.ended) >= site.delayMs)
    return yield* withdraw(site, ts, "refused");
  return new Held(ts, site.holdsFrom(begun, again.ended));
}

/**
 * Frees what a claim that came to nothing has written, so that nobody waits for its end. Only where stores compare and set:
 * elsewhere what it frees could be greater than the record of whoever has won, and the register would look free.
 */
export function* withdraw(site: Site, record: DeltaRecord, because: Idle["because"]): Protocol<Idle> {
  if (site.register.isAtomic) {
    const { now } = yield lookAtClocks;
    yield* site.register.sendAnywhere(site.freed(record), (content) => sameStamp(content, record), now);
  }
  return new Idle(because);
}

/** Fig. 2, lines 1 and 6. The paper's registers always answer; ours may take several δ. `undefined` when cancelled. */
export function* readAnswered(site: Site): Protocol<Seen | undefined> {
  let { now, cancelled } = yield lookAtClocks;
  while (!cancelled) {
    const seen = yield* site.register.read(now);
    if (seen.kind === "read" && !seen.cancelled) return seen;
    ({ now, cancelled } = yield { kind: "delay", delayMs: site.delayMs });
  }
  return undefined;
}
