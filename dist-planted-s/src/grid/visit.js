import { corrupt, sameBytes } from "../delta/line.js";
import { Kind, Message } from "../flease/message.js";
import { LeaseholdError } from "../lease/errors.js";
import { decodeEntry, encodeEntry } from "./codec.js";
import { entryRegister } from "./registers.js";
/** Somebody else was faster each time: then nothing is answered, as if the message had been lost. */
const redosMax = 16;
/** One request's way to an acceptor. */
export function visit(at, store, request, seen) {
    return revise(at, store, request.resource, seen, (record, now) => {
        const reply = new Message();
        const { next, replies, heard } = at.acceptor.handle(record, request, now, reply);
        // Only this process writes its ballot, so what it last saw tells whether there is anything to release.
        const isFinal = request.kind === Kind.release;
        return { next, value: { reply: replies ? reply : undefined, heard }, isFinal };
    });
}
/**
 * Loads a record, computes what becomes of it, writes that by compare-and-set, and only then returns the value (persist
 * before send). If another was faster, all of it again, with the record as it is now and a fresh reading of the clock. A write
 * without an answer is unknown, so nothing is returned; should it land later, it does what it would have done then, or
 * nothing, since it expects the very content that it was computed from.
 *
 * `seen` may be what this process wrote last: a renewal then costs one write and no read. A value that nothing was written
 * for is never returned on the strength of that, as it may be out of date.
 */
export function* revise(at, store, resource, seen, change) {
    const register = entryRegister(resource);
    const id = at.idOf(store);
    const refusal = yield* at.agreement.at(store, id);
    if (refusal !== undefined)
        return { error: refusal };
    let known = seen;
    let fresh = false;
    for (let redos = 0; redos <= redosMax; redos += 1) {
        if (known === undefined) {
            const read = seenIn(at, yield* ask(at, store, { op: "read", register }), resource);
            if ("error" in read)
                return read;
            known = read;
            fresh = true;
        }
        const { next, value, isFinal } = change(known.record, at.now());
        const content = next && encodeEntry(next);
        if (content === undefined || (known.content !== undefined && sameBytes(content, known.content))) {
            if (fresh || isFinal === true)
                return { value, seen: known };
            known = undefined;
            continue;
        }
        const { content: expected } = known;
        const answer = yield* ask(at, store, { op: "replace", register, id, expected, next: content });
        if (answer?.kind === "written")
            return { value, seen: { content, record: next } };
        const found = seenIn(at, answer, resource);
        if ("error" in found)
            return found;
        known = found;
        fresh = true;
    }
    return { error: new LeaseholdError("STORE_UNAVAILABLE", "others wrote to the register all the time") };
}
/** Asks one store. */
export function* ask(at, store, request) {
    const requests = Array.from({ length: at.stores }, (_, index) => (index === store ? request : undefined));
    const enough = (answers) => answers[store] !== undefined;
    const { answers } = yield { kind: "ask", requests, enough, timeoutMs: at.timeoutMs };
    return answers[store];
}
/** What the answer to a read, or to a write that found something else, says of a resource's register. */
export function seenIn(at, answer, resource) {
    const cells = cellsIn(answer);
    if (cells instanceof LeaseholdError)
        return { error: cells };
    const [content] = cells;
    if (content === undefined)
        return { content: undefined, record: undefined };
    try {
        if (cells.length > 1)
            throw corrupt("there are several where only one can be", content);
        const record = decodeEntry(content);
        if (record.resource !== resource)
            throw corrupt(`it stands where that of ${JSON.stringify(resource)} belongs`, content);
        at.acceptor.checkTimes(record, at.now());
        return { content, record };
    }
    catch (error) {
        if (error instanceof LeaseholdError)
            return { error };
        throw error;
    }
}
/** The cells in an answer, or why there are none. */
export function cellsIn(answer) {
    if (answer === undefined)
        return new LeaseholdError("STORE_UNAVAILABLE", "a store did not answer in time");
    if (answer.kind === "failed")
        return answer.error;
    if (answer.kind === "cells" || answer.kind === "conflict")
        return answer.cells;
    throw new Error(`assertion failed: ${answer.kind} tells no cells`);
}
