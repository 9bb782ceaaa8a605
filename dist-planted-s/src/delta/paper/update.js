import { elapsedMs } from "../tenure.js";
/** Others may write between a look and a write. Whoever loses so often leaves the field. */
const roundsMax = 12;
/**
 * Brings a majority of the stores to where `step` wants them: compare-and-set on atomic ones, redone when another was
 * faster; a plain write into one's own slot on slotted ones. Never waits for a particular store.
 */
export function* update(farm, wanted) {
    const { register, contents, step, begun, timeoutMs } = wanted;
    const states = [];
    const failures = [];
    const count = (state) => states.filter((one) => one === state).length;
    let ended = begun;
    for (let round = 0; round < roundsMax; round += 1) {
        const requests = Array.from({ length: farm.size }, (_, store) => requestFor(store));
        if (count("done") >= farm.majority)
            return { kind: "done", failures, ended };
        if (farm.size - count("refused") < farm.majority && wanted.bestEffort !== true)
            return { kind: "refused", failures, ended };
        const leftMs = timeoutMs - elapsedMs(begun, ended);
        if (leftMs <= 0 || requests.every((request) => request === undefined))
            break;
        const { answers, now } = yield { kind: "ask", requests, enough: roundIsOver, timeoutMs: leftMs };
        ended = now;
        for (const [store, answer] of answers.entries())
            take(store, requests[store], answer);
        function roundIsOver(soFar) {
            const written = soFar.filter((answer) => answer?.kind === "written").length;
            const conflicts = soFar.filter((answer) => answer?.kind === "conflict").length;
            const doneNow = count("done") + written;
            if (doneNow >= farm.majority)
                return true;
            // Going on is worth it once those who can be asked again make up what is missing.
            if (conflicts > 0 && doneNow + conflicts >= farm.majority)
                return true;
            return requests.every((request, store) => request === undefined || soFar[store] !== undefined);
        }
    }
    return { kind: "unanswered", failures, ended };
    function requestFor(store) {
        if (states[store] !== undefined)
            return undefined;
        const expected = contents[store];
        const next = step(store, expected);
        if (next.kind !== "write") {
            states[store] = next.kind === "done" ? "done" : "refused";
            return undefined;
        }
        if (farm.kindOf(store) === "slotted")
            return { op: "put", register, next: next.next, ...(wanted.quiet === true && { quiet: true }) };
        return { op: "replace", register, id: farm.idOf(store), expected, next: next.next };
    }
    function take(store, request, answer) {
        if (answer === undefined || request === undefined || request.op === "read" || request.op === "list")
            return;
        if (answer.kind === "failed" || answer.id !== farm.idOf(store)) {
            states[store] = "failed";
            failures.push(answer);
        }
        else if (answer.kind === "written") {
            states[store] = "done";
            contents[store] = request.next;
        }
        else if (answer.kind === "conflict")
            contents[store] = answer.cells[0];
    }
}
