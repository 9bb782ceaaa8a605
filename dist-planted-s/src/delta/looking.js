import { LeaseholdError } from "../lease/errors.js";
import { cellOf, isCell, readCells } from "./cell.js";
import { leaseRegister, resourceOf } from "./registers.js";
import { sightingOf } from "./sighting.js";
/** Registers that one look at a store lists: as many as one watch follows. Of a store with more nobody knows what is missing. */
export const listedMax = 100_000;
/** Reads a resource's cells at all stores into `cells`, until they are enough. */
export function* readAll(farm, resource, cells, timeoutMs, enough) {
    const register = leaseRegister(resource);
    const take = (answers) => answers.forEach((answer, store) => {
        if (answer !== undefined)
            cells[store] ??= cellOf(answer, resource, farm.nameOf(store));
    });
    const step = yield {
        kind: "ask",
        requests: Array.from({ length: farm.size }, () => ({ op: "read", register })),
        timeoutMs,
        enough: (answers) => {
            take(answers);
            return enough();
        },
    };
    take(step.answers);
    return step;
}
/** Asks every store what it says of a resource; none is waited for longer than δ. */
export function* lookAtFarm({ farm, settings }, observations, resource, timeoutMs) {
    const cells = [];
    const { now } = yield* readAll(farm, resource, cells, Math.min(timeoutMs, settings.delayMs), () => false);
    observeAll(observations, resource, cells, now.monotonicMs);
    return sightingOf(farm, resource, cells, observations, now.monotonicMs);
}
/** Asks every store for all that it holds below a prefix. */
export function* listFarm({ farm, settings }, observations, prefix, timeoutMs) {
    const { now, answers } = yield {
        kind: "ask",
        requests: Array.from({ length: farm.size }, () => ({
            op: "list",
            prefix: leaseRegister(prefix),
            registersMax: listedMax,
        })),
        timeoutMs: Math.min(timeoutMs, settings.delayMs),
        enough: () => false,
    };
    const errors = [];
    const byResource = new Map();
    answers.forEach((answer, store) => {
        if (answer?.kind === "failed")
            errors[store] = answer.error;
        if (answer?.kind === "registers" && !isWhole(answer))
            errors[store] = tooWide;
        if (answer?.kind !== "registers")
            return;
        for (const [register, cells] of answer.registers) {
            const resource = resourceOf(register);
            // A register that this store does not list was never written there.
            const readings = byResource.get(resource) ?? answers.map(absentIn);
            readings[store] = readCells(cells, resource, farm.nameOf(store));
            byResource.set(resource, readings);
        }
    });
    const held = [];
    for (const [resource, cells] of byResource) {
        observeAll(observations, resource, cells, now.monotonicMs);
        const sighting = sightingOf(farm, resource, cells, observations, now.monotonicMs);
        if (sighting.state === "held")
            held.push({ resource, sighting });
    }
    return { held, answered: answers.map(isWhole), errors };
}
const tooWide = new LeaseholdError("WATCH_TOO_WIDE", `a store has ${listedMax} resources or more below the prefix, those that are free included`);
/** The store told of all that it has below the prefix. */
function isWhole(answer) {
    return answer?.kind === "registers" && answer.registers.size < listedMax;
}
const absent = { content: undefined, record: undefined };
function absentIn(answer) {
    return isWhole(answer) ? absent : undefined;
}
function observeAll(observations, resource, cells, nowMs) {
    cells.forEach((cell, store) => {
        if (isCell(cell) && cell.record !== undefined)
            observations.see(resource, store, cell.record, nowMs);
    });
}
