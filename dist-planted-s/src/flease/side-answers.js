import { LeaseholdError } from "../lease/errors.js";
/** What an acceptor says of a resource, without what only its host knows. */
export function answerOn(acceptor, resource, now) {
    const readyInMs = Math.ceil(acceptor.remainingSilenceMs(now));
    const unknown = { owner: "", token: 0, until: 0, lease: "none", barred: "", waiting: 0 };
    // What a recovering acceptor knows is too little to be told (I15).
    if (readyInMs > 0 || !acceptor.ready)
        return { ...unknown, state: "recovering", readyInMs, promised: 0 };
    const entry = acceptor.entry(resource);
    const isLive = entry !== undefined && stateName(acceptor, entry, now) === "live";
    const behindMs = Math.ceil(acceptor.behindMs(resource, now));
    // Nobody can have it, so it is not free either; whoever holds it can go on.
    if (behindMs > 0 && !isLive)
        return { ...unknown, state: "recovering", readyInMs: behindMs, promised: 0 };
    if (entry === undefined)
        return { ...unknown, state: "ready", readyInMs: 0, promised: acceptor.floor };
    return {
        state: "ready",
        readyInMs: 0,
        promised: entry.promisedNumber,
        owner: entry.leaseOwner,
        token: entry.token,
        until: entry.leaseUntil,
        lease: stateName(acceptor, entry, now),
        barred: entry.barredOwner,
        waiting: 0,
    };
}
function stateName(acceptor, entry, now) {
    if (entry.leaseOwner === "")
        return "none";
    if (entry.released)
        return "released";
    return acceptor.isOver(entry, now) ? "over" : "live";
}
/** An answer to `explain` in the form that programs see, or why there is none. */
export function memberAnswerFrom(id, address, value, error, wall) {
    const told = error === undefined ? record(value) : undefined;
    if (told === undefined) {
        const reason = error instanceof Error ? error.message : "its answer cannot be understood";
        return { view: { id, address, state: "unreachable", reason }, label: undefined };
    }
    const state = told["state"] === "ready" || told["state"] === "clock-fault" ? told["state"] : "recovering";
    const holder = text(told["owner"]);
    const lease = told["lease"];
    const barred = text(told["barred"]);
    const view = {
        id,
        address,
        state,
        ...(state === "recovering" && { readyInMs: number(told["readyInMs"]) }),
        ...(state === "ready" && { promised: whole(told["promised"]), waiting: number(told["waiting"]) }),
        ...(barred !== "" && { barred }),
        ...((lease === "live" || lease === "over" || lease === "released") && {
            lease: {
                holder,
                token: whole(told["token"]),
                state: lease,
                remainingMs: lease === "live" ? Math.max(0, number(told["until"]) - wall) : 0,
            },
        }),
    };
    return { view, label: typeof told["label"] === "string" ? told["label"] : undefined };
}
/** @throws LeaseholdError for an answer that is no list. */
export function listFrom(value) {
    const page = record(value);
    if (page === undefined || !Array.isArray(page["held"]))
        throw new LeaseholdError("UNREACHABLE", "a member that recovers lists nothing");
    return { held: page["held"].map(leaseFrom), more: page["more"] === true };
}
/** @throws LeaseholdError for an answer that is no page. */
export function pageFrom(value) {
    const page = record(value);
    if (page === undefined || !Array.isArray(page["held"]) || !Array.isArray(page["free"]))
        throw new LeaseholdError("UNREACHABLE", "a member that recovers tells nothing");
    const { held, more } = listFrom(page);
    return { held, free: page["free"].map(text), more, anew: page["anew"] === true };
}
function leaseFrom(value) {
    const lease = record(value) ?? {};
    return {
        resource: text(lease["resource"]),
        owner: text(lease["owner"]),
        number: number(lease["number"]),
        sequence: number(lease["sequence"]),
        until: number(lease["until"]),
        token: Number(whole(lease["token"])),
        ...(typeof lease["label"] === "string" && { label: lease["label"] }),
    };
}
function record(value) {
    return typeof value === "object" && value !== null ? value : undefined;
}
function text(value) {
    return typeof value === "string" ? value : "";
}
function number(value) {
    return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
function whole(value) {
    return Number.isSafeInteger(value) ? BigInt(value) : 0n;
}
