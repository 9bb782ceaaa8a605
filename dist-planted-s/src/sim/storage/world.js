import { Farm } from "../../delta/farm.js";
import { decodeFarmCell, mergeFarmCells } from "../../delta/farm-cell.js";
import { clockRateErrorDefault, stretched } from "../../lease/clock-rates.js";
import { farmRegister } from "../../delta/store.js";
import { StateHash } from "../../flease/state-hash.js";
import { Deadlines } from "../../lease/deadlines.js";
import { SharedWall, SimClock } from "../clocks.js";
import { Task } from "../events.js";
import { StorageChaos } from "./chaos.js";
import { StorageCounters } from "./counters.js";
import { Latency } from "./latency.js";
import { SimParty } from "./party.js";
import { startProgram } from "./programs/index.js";
import { guardDelayMs } from "./programs/holder.js";
import { SimStore } from "./store.js";
/** As few as may be, so that they have to be raised all the time. */
const epochsAhead = { atomic: 4n, slotted: 4n << 32n };
/** Stores, processes and true time. Everything that happens is an event; the order of events decides the run. */
export class StorageWorld {
    plan;
    random;
    counters = new StorageCounters();
    hash = new StateHash();
    claims = new Set();
    processes = [];
    stores;
    waitMs;
    settledMs;
    nowMs = 0;
    violation;
    #events = new Deadlines();
    #observers;
    #report;
    /** Looked at often, and seldom changed. */
    #cells = new WeakMap();
    #settings;
    #story;
    #latency;
    #wall = new SharedWall();
    #leaders = new Map();
    #chaos = new StorageChaos(this);
    #guardToken = 0n;
    constructor({ plan, random, checkers, story }) {
        this.plan = plan;
        this.random = random;
        this.#story = story;
        this.stores = plan.kinds.map((kind, index) => new SimStore(kind, `s${index}`));
        this.#latency = new Latency(plan, random);
        this.waitMs = plan.leaseMs + 6 * plan.delayMs;
        // What was written before, and the holds that rest on it, are over after two waits.
        this.settledMs =
            plan.stableFromMs === 0 ? 0 : plan.stableFromMs + 2 * stretched(this.waitMs, clockRateErrorDefault);
        this.#settings = {
            leaseMsMax: plan.leaseMs,
            delayMs: plan.delayMs,
            pollMs: Math.max(1, plan.delayMs / 3),
            clockRateError: plan.clockRateError,
        };
        this.#report = (invariant, text) => {
            if (this.violation !== undefined)
                return;
            this.violation = { invariant, atMs: this.nowMs, event: this.counters.events, text };
            this.say(`VIOLATION of ${invariant}: ${text}`);
        };
        this.#observers = checkers(this, this.#report);
        this.#found();
    }
    get recovering() {
        const isRecent = (atMs) => this.nowMs >= atMs && this.nowMs - atMs < 3 * this.waitMs;
        const hasChanged = this.stores.some((store) => isRecent(store.forgotAtMs) || isRecent(store.silentFromMs));
        return hasChanged || this.uncounted !== undefined;
    }
    get uncounted() {
        if (this.stores.every(({ forgotAtMs }) => forgotAtMs === -Infinity))
            return undefined;
        return this.stores.find((store) => {
            const answer = store.perform({ op: "read", register: farmRegister }, "");
            const cell = mergeFarmCells(answer.kind === "cells" ? answer.cells.map((bytes) => this.#cellIn(bytes)) : []);
            return cell?.id !== store.id || cell.state !== "ready";
        });
    }
    #cellIn(bytes) {
        const cell = this.#cells.get(bytes) ?? decodeFarmCell(bytes);
        this.#cells.set(bytes, cell);
        return cell;
    }
    run() {
        const { plan, counters } = this;
        for (let index = 0; index < plan.processes; index += 1)
            this.start(index, 0);
        this.#chaos.begin();
        this.#look();
        for (;;) {
            const dueMs = this.#events.nextDueMs();
            if (dueMs > plan.endMs || this.violation !== undefined)
                break;
            this.nowMs = dueMs;
            const task = this.#events.popDue(dueMs);
            counters.events += 1;
            this.hash.number(dueMs).number(task.code);
            task.run();
        }
        if (this.violation === undefined) {
            this.nowMs = plan.endMs;
            this.tell((observer) => observer.over?.());
        }
        counters.runs = 1;
    }
    at(timeMs, body) {
        if (timeMs !== Infinity)
            this.#events.schedule(new Task(1, body), Math.max(timeMs, this.nowMs));
    }
    tell(told) {
        for (const observer of this.#observers)
            told(observer);
    }
    say(text) {
        this.hash.text(text);
        this.#story?.(`${this.nowMs.toFixed(3).padStart(12)}  ${text}`);
    }
    /** Starts a process, or the next incarnation of one. */
    start(index, incarnation) {
        const { plan, random } = this;
        const clock = new SimClock(this.#wall, random.between(0, 1e6), false);
        clock.setRate(this.nowMs, 1 + plan.clockDrift * random.pick([-1, 0, 1]));
        const farm = this.#farm();
        const party = new SimParty(this, index, `p${index}.${incarnation}`, clock, farm);
        this.processes[index] = party;
        this.say(`${party.writer} starts`);
        party.tend(plan.delayMs / 2, () => startProgram(this.#stageOf(party)));
        if (plan.lifeMs === Infinity)
            return;
        const endMs = this.nowMs + random.between(0.5, 1) * plan.lifeMs;
        this.at(endMs, () => this.#chaos.crash(party));
    }
    failed(from, error) {
        this.say(`${from.writer}: ${error.code}`);
        this.counters.errors += 1;
        if (error.code !== "STORE_FORGOTTEN")
            this.#report("one-farm", `${from.writer}: ${error.message}`);
    }
    crash(party) {
        party.isAlive = false;
        this.#leaders.delete(party);
        this.say(`${party.writer} crashes`);
        for (const claim of this.claims)
            if (claim.party === party)
                this.claims.delete(claim);
        this.tell((observer) => observer.disturbed?.(party));
    }
    pause(party, pauseMs) {
        party.pausedUntilMs = this.nowMs + pauseMs;
        this.say(`${party.writer} is stopped for ${pauseMs.toFixed(0)} ms`);
        this.tell((observer) => observer.disturbed?.(party));
    }
    tears(from, requests) {
        const { plan, random, counters } = this;
        const isWrite = requests.some((request) => request?.op === "replace" || request?.op === "put");
        if (!isWrite || plan.tornRate === 0 || !random.chance(plan.tornRate))
            return undefined;
        counters.tornWrites += 1;
        this.#chaos.crash(from);
        return () => random.chance(0.5);
    }
    /** A request goes to a store, takes effect there, and its answer comes back: each in its own time, or never. */
    send(from, store, request, answer) {
        const target = this.stores[store];
        const { effectMs, answerMs } = this.#latency.draw(target, this.nowMs);
        if (effectMs === Infinity)
            return;
        const inOrderMs = target.inOrder(request, from.writer, effectMs);
        if (request.op !== "read" && inOrderMs - this.nowMs > this.plan.delayMs)
            this.counters.lateWrites += 1;
        this.at(inOrderMs, () => {
            const said = target.perform(request, from.writer);
            this.at(Math.max(answerMs, inOrderMs), () => answer(said));
        });
    }
    #farm() {
        const { delayMs } = this.plan;
        const same = { durable: true, bytesMax: 65_536, pollMs: delayMs, delayMs };
        const traits = this.stores.map(({ name, kind }) => ({ ...same, name, kind }));
        return new Farm(traits, this.#settings, epochsAhead);
    }
    /** All stores know the farm before the run begins: how one is founded is not what is looked at here. */
    #found() {
        const look = this.#farm().look();
        const now = { monotonicMs: 0, wallMs: 0 };
        for (let answers = [];;) {
            const step = look.next({ now, cancelled: false, answers });
            if (step.done === true)
                return;
            const requests = step.value.kind === "ask" ? step.value.requests : [];
            answers = requests.map((request, store) => request && this.stores[store].perform(request, "founder"));
        }
    }
    #stageOf(party) {
        const { plan, random, counters } = this;
        const environment = {
            farm: party.farm,
            writer: party.writer,
            random,
            settings: this.#settings,
        };
        const isUnstable = () => this.nowMs < plan.stableFromMs;
        const stage = {
            plan,
            party,
            environment,
            random,
            counters,
            get unstable() {
                return isUnstable();
            },
            tell: (told) => this.tell(told),
            begin: (claim) => {
                this.claims.add(claim);
                this.tell((observer) => observer.began?.(claim));
            },
            end: (claim) => {
                this.claims.delete(claim);
                this.tell((observer) => observer.ended?.(claim));
            },
            guard: (claim) => this.at(this.nowMs + guardDelayMs(stage), () => this.#guard(claim)),
            leads: (asked) => this.#leaders.set(party, asked),
            say: (text) => this.say(text),
        };
        return stage;
    }
    /** What is guarded refuses a token smaller than the greatest that it has seen. */
    #guard(claim) {
        if (claim.token < this.#guardToken) {
            this.counters.guardRefusals += 1;
            return;
        }
        this.#guardToken = claim.token;
        this.counters.guardedWrites += 1;
        this.tell((observer) => observer.guarded?.(claim));
    }
    #look() {
        const leaders = [...this.#leaders].filter(([, asked]) => asked()).map(([party]) => party);
        this.counters.leaderships += leaders.length === 1 ? 1 : 0;
        this.tell((observer) => observer.looked?.(leaders));
        this.at(this.nowMs + this.plan.delayMs / 2, () => this.#look());
    }
}
