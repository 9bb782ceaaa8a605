import type { Protocol } from "../effects.js";
import { lookAtClocks } from "../effects.js";
import type { DeltaRecord } from "../record/record.js";
import { elapsedMs } from "../../common/both-clocks.js";
import type { Seen, Site } from "./site.js";
import { sameStamp } from "../record/stamp.js";
import { Held, Idle } from "./states.js";

/**
 * Fig. 2: waits until nobody holds the register, and claims it. Ends with a hold or on cancellation. It
 * amends the figure in three ways. A contender waits for *all* records that a majority returns, not only for
 * the greatest, each by the Δ and δ in the record (`Site.obstacle`). Operations are timed (`claim`). Where
 * stores compare and set, a free register is claimed without the first wait.
 */
export function* contend(site: Site, _from: Idle): Protocol<Held | Idle> {
  let backOffMs = 0;
  for (;;) {
    const cur = yield* readAnswered(site); //                                       1, 6  cur ← read(x)
    if (cur === undefined) return new Idle("cancelled");
    const obstacle = site.obstacle(cur, backOffMs); //                             7  until cur = prev
    if (obstacle !== undefined) {
      const delayMs = Math.max(0, obstacle.overAtMs - cur.ended.monotonicMs);
      const { cancelled } = yield { kind: "delay", delayMs }; //                   5  delay(Δ + 6δ)
      if (cancelled) return new Idle("cancelled");
      continue;
    }
    const held = yield* claim(site, cur); //                                        8 to 12
    if (held.state === "hold" || held.because === "cancelled") return held;
    // Without it, contenders that start waiting at the same moment would collide repeatedly.
    backOffMs = site.backOffMs();
  }
}

/**
 * Fig. 2, lines 8 to 12, for a contender that has just found no obstacle. Where stores compare and set, line
 * 9 replaces only records that have been unchanged for their wait. If the time from the start of that read to
 * the end of the write reaches 2δ, the claim fails: another contender's pause may have been too short to see
 * this write.
 */
export function* claim(site: Site, cur: Seen): Protocol<Held | Idle> {
  const x = site.register;
  const ts = site.recordAfter(cur); //                                           8  ts ← a unique timestamp
  if (!site.environment.farm.mayTake(ts.epoch)) return new Idle("refused");
  const begun = cur.ended;
  const written = yield* x.send(ts, (content, next) => site.mayTake(content, cur, next), begun); // 9  write(x, ts)
  const inTime = elapsedMs(cur.begun, written.ended) < 2 * site.delayMs;
  if (written.kind !== "done" || !inTime) return yield* withdraw(site, ts, "refused");
  const pause = yield { kind: "delay", delayMs: site.pauseMs(cur) }; //         10  delay(2δ)
  if (pause.cancelled) return yield* withdraw(site, ts, "cancelled");
  const again = yield* x.read(pause.now); //                                    11  cur ← read(x)
  if (again.cancelled) return yield* withdraw(site, ts, "cancelled");
  const isMine = again.kind === "read" && site.isMine(again, ts); //              12  until cur = ts
  if (!isMine || !site.isLatest(again, ts) || elapsedMs(again.begun, again.ended) >= site.delayMs)
    return yield* withdraw(site, ts, "refused");
  return new Held(ts, begun); // Δ counts from before the write was sent; the paper counts from here, and waits 6δ for it.
}

/**
 * Frees the record of a failed claim, so that nobody waits for its end. Only where stores compare and set:
 * elsewhere the freeing record could be greater than the winner's, and the register would look free. A
 * reader's record, under which others may hold, is never freed: it expires by itself.
 */
export function* withdraw(site: Site, record: DeltaRecord, because: Idle["because"]): Protocol<Idle> {
  if (site.register.isAtomic && !site.isShared) {
    const { now } = yield lookAtClocks;
    yield* site.register.sendAnywhere(site.freed(record), (content) => sameStamp(content, record), now);
  }
  return new Idle(because);
}

/**
 * Fig. 2, lines 1 and 6. The paper's registers always answer; real ones may take several δ. `undefined` when
 * cancelled.
 */
export function* readAnswered(site: Site): Protocol<Seen | undefined> {
  let { now, cancelled } = yield lookAtClocks;
  while (!cancelled) {
    const seen = yield* site.register.read(now);
    if (seen.kind === "read" && !seen.cancelled) return seen;
    ({ now, cancelled } = yield { kind: "delay", delayMs: site.delayMs });
  }
  return undefined;
}
