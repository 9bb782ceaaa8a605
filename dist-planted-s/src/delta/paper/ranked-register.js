import { lookAtClocks } from "../effects.js";
import { decodeLine, encodeLine } from "../line.js";
import { LastingFarm } from "./lasting.js";
import { update } from "./update.js";
export function compareRanks(a, b) {
    if (a.round !== b.round)
        return a.round < b.round ? -1 : 1;
    return a.writer < b.writer ? -1 : a.writer > b.writer ? 1 : 0;
}
/** Before all that processes choose. */
const lowest = { round: 0n, writer: "" };
/**
 * The ranked register (section 9 rests on it), on a majority of stores that compare and set. A write commits only if no
 * operation of a greater rank has come before it at any store of its majority; a read returns the value with the greatest rank
 * that was committed before it, or one that may still be.
 */
export class RankedRegister {
    #options;
    #farm;
    #contents = [];
    constructor(options) {
        this.#options = options;
        this.#farm = new LastingFarm(options.farm);
    }
    /** rr-read(r): from now on smaller ranks cannot write; tells the value of the greatest rank that has. */
    *read(rank) {
        yield* this.#look();
        const seen = new Map();
        const kind = yield* this.#bring((store, cell) => {
            if (compareRanks(cell.read, rank) > 0)
                return "refuse";
            seen.set(store, cell);
            return { ...cell, read: rank };
        });
        if (kind !== "done")
            return { kind: "aborted", greatest: this.#greatest() };
        let latest = { read: lowest, write: lowest };
        for (const cell of seen.values())
            if (compareRanks(cell.write, latest.write) >= 0)
                latest = cell;
        return { kind: "read", value: latest.value, rank: latest.write };
    }
    /** rr-write(⟨r, v⟩). After an abort the value may stand in some stores all the same, and a later read may find it. */
    *write(rank, value) {
        const kind = yield* this.#bring((_store, cell) => {
            if (compareRanks(cell.read, rank) > 0 || compareRanks(cell.write, rank) > 0)
                return "refuse";
            return { read: rank, write: rank, value };
        });
        return kind === "done" ? "commit" : "abort";
    }
    /** A value that stands in any store that answers, whatever its rank: for registers that only ever get one value. */
    *peek() {
        yield* this.#look();
        for (const content of this.#contents) {
            const value = decode(content)?.value;
            if (value !== undefined)
                return value;
        }
        return undefined;
    }
    /** Guesses of what stands in the stores cost a round where they are wrong. */
    *#look() {
        const { name, timeoutMs } = this.#options;
        const farm = this.#farm;
        farm.check();
        const requests = Array.from({ length: farm.size }, () => ({ op: "read", register: name }));
        const counts = (store, answer) => answer?.kind === "cells" && answer.id === farm.idOf(store);
        const enough = (answers) => answers.filter((answer, store) => counts(store, answer)).length >= farm.majority;
        const { answers } = yield { kind: "ask", requests, enough, timeoutMs };
        for (const [store, answer] of answers.entries())
            if (answer?.kind === "cells" && counts(store, answer))
                this.#contents[store] = answer.cells[0];
    }
    *#bring(change) {
        const { name, timeoutMs } = this.#options;
        this.#farm.check();
        const begun = (yield lookAtClocks).now;
        const step = (store, content) => {
            const cell = decode(content);
            const next = cell === undefined ? "refuse" : change(store, cell);
            if (next === "refuse")
                return { kind: "refuse" };
            const bytes = encode(next);
            return same(cell, next) ? { kind: "done" } : { kind: "write", next: bytes };
        };
        const wanted = { register: name, contents: this.#contents, step, begun, timeoutMs };
        return (yield* update(this.#farm, wanted)).kind;
    }
    #greatest() {
        let greatest = lowest;
        for (const content of this.#contents) {
            const read = decode(content)?.read;
            if (read !== undefined && compareRanks(read, greatest) > 0)
                greatest = read;
        }
        return greatest;
    }
}
const format = "leasehold-ranked/1";
function encode({ read, write, value }) {
    const text = ({ round, writer }) => [round.toString(), writer];
    return encodeLine(format, JSON.stringify({ read: text(read), write: text(write), value }));
}
/** `undefined` for what is foreign or damaged: nothing is written over it. */
function decode(content) {
    if (content === undefined)
        return { read: lowest, write: lowest };
    try {
        const { read, write, value } = decodeLine(format, content);
        const ranks = { read: rankOf(read), write: rankOf(write) };
        if (typeof value === "string")
            return { ...ranks, value };
        return value === undefined ? ranks : undefined;
    }
    catch {
        return undefined;
    }
}
function rankOf(value) {
    const [round, writer] = value;
    if (typeof round !== "string" || typeof writer !== "string")
        throw new TypeError("no rank");
    return { round: BigInt(round), writer };
}
function same(a, b) {
    return (a !== undefined &&
        compareRanks(a.read, b.read) === 0 &&
        compareRanks(a.write, b.write) === 0 &&
        a.value === b.value);
}
