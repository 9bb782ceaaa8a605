import { formatDuration } from "../lease/duration.js";
import { LeaseholdError } from "../lease/errors.js";
import { decodeFarmCell, encodeFarmCell, mergeFarmCells, } from "./farm-cell.js";
import { sameBytes } from "./line.js";
/** What the store says under its present marker. */
export function ownCell(sight) {
    return sight.kind === "answered" && sight.cell?.id === sight.id ? sight.cell : undefined;
}
export function termsIn({ generation, farm, leaseMsMax, delayMsMax, epochFloor, epochMax, }) {
    return { generation, farm, leaseMsMax, delayMsMax, epochFloor, epochMax };
}
/** The store has all of the plan in its cell. */
export function knows(sight, terms) {
    const cell = ownCell(sight);
    return (cell !== undefined && sameBytes(encodeFarmCell(cell), encodeFarmCell({ ...cell, ...termsIn(terms) })));
}
/** Nothing was written but how long the store has waited: that is no reason to look again. */
export function isMereWait(sight, request) {
    const cell = ownCell(sight);
    if (cell === undefined || (request?.op !== "replace" && request?.op !== "put"))
        return false;
    const { waitedMs: written } = decodeFarmCell(request.next);
    return sameBytes(encodeFarmCell({ ...cell, waitedMs: written }), request.next);
}
export function sightOf(answer, traits) {
    if (answer?.kind !== "cells") {
        const silence = `${traits.name}: it did not answer within ${formatDuration(traits.delayMs)}`;
        const error = answer?.kind === "failed" ? answer.error : new LeaseholdError("STORE_UNAVAILABLE", silence);
        return { kind: "silent", error };
    }
    try {
        const { id, cells } = answer;
        const content = traits.kind === "atomic" ? cells[0] : undefined;
        return { kind: "answered", id, cell: mergeFarmCells(cells.map(decodeFarmCell)), content };
    }
    catch (error) {
        if (error instanceof LeaseholdError)
            return { kind: "silent", error };
        throw error;
    }
}
