import { isCell } from "./cell.js";
import { encodeRecord } from "./codec.js";
import { readAll } from "./looking.js";
import { leaseRegister } from "./registers.js";
import { sightingOf } from "./sighting.js";
/** The holder may renew between the read and the write; it cannot do so all the time. */
const triesMax = 5;
/**
 * Leaves a request in the holder's own record, by compare-and-set, so that it costs a holder nothing until there is one: its next
 * renewal finds another content than it wrote, and reads. The record's timestamp stays what it is, so that nobody has to wait any
 * longer for its end.
 */
export function* askHolder(environment, observations, resource, asked, timeoutMs) {
    const { farm, settings } = environment;
    const stepMs = Math.min(timeoutMs, settings.delayMs);
    const register = leaseRegister(resource);
    const told = new Set();
    let first;
    for (let tries = 0;; tries++) {
        const cells = [];
        const { now, cancelled } = yield* readAll(farm, resource, cells, stepMs, () => false);
        cells.forEach((cell, store) => {
            if (isCell(cell) && cell.record !== undefined)
                observations.see(resource, store, cell.record, now.monotonicMs);
        });
        const sighting = sightingOf(farm, resource, cells, observations, now.monotonicMs);
        first ??= sighting;
        const holder = first.record;
        if (holder === undefined)
            return { sighting: first, stores: 0 };
        const requests = cells.map((cell, store) => {
            if (!isCell(cell) || !isOf(cell.record, holder))
                return undefined;
            if (cell.record.asked?.broken === true || (cell.record.asked !== undefined && !asked.broken)) {
                told.add(store);
                return undefined;
            }
            const next = encodeRecord({ ...cell.record, asked });
            return { op: "replace", register, id: farm.idOf(store), expected: cell.content, next };
        });
        const isDone = requests.every((request) => request === undefined) || cancelled || tries >= triesMax;
        if (isDone)
            return { sighting: first, stores: told.size };
        const { answers } = yield { kind: "ask", requests, timeoutMs: stepMs, enough: () => false };
        answers.forEach((answer, store) => {
            if (answer?.kind === "written")
                told.add(store);
        });
        if (answers.every((answer) => answer?.kind !== "conflict"))
            return { sighting: first, stores: told.size };
    }
}
function isOf(record, holder) {
    return record?.state === "held" && record.writer === holder.writer && record.epoch === holder.epoch;
}
