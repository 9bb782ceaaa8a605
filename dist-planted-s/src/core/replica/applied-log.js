import { faults } from "#core-faults";
import { fromBinary } from "@bufbuild/protobuf";
import { LeaseholdError } from "../../lease/errors.js";
import { CommandSchema } from "../gen/leasehold/command_pb.js";
/** What any entry costs, beside what it looks at. */
const unitsPerEntry = 8;
/**
 * Applies what is committed, entry after entry, a bounded part in each turn: a command that changes a million keys takes many. Until its
 * last step it has not been applied, to whoever reads.
 */
export class AppliedLog {
    #context;
    #listener;
    #entries = [];
    #next = 0;
    #applying;
    #sweeping;
    constructor(context, listener) {
        this.#context = context;
        this.#listener = listener;
    }
    /** The state is between two commands otherwise. */
    get isApplying() {
        return this.#context.state.isApplying;
    }
    get isBusy() {
        const { hasGarbage } = this.#context.state.revisions;
        return this.isApplying || this.#next < this.#entries.length || hasGarbage;
    }
    add(entries) {
        if (entries.length === 0)
            return;
        this.#entries = [...this.#entries.slice(this.#next), ...entries];
        this.#next = 0;
    }
    /** The state is about to become another: all that was waiting is in it. */
    replaced() {
        this.#entries = [];
        this.#next = 0;
        this.#applying = undefined;
        this.#sweeping = undefined;
    }
    turn() {
        const { appliedIndex, limits, raft, state } = this.#context;
        const { visits } = state.revisions;
        const end = visits.count + limits.unitsPerTurn;
        for (let units = 0; visits.count + units < end; units += unitsPerEntry)
            if (!this.#step())
                break;
        if (this.#context.appliedIndex > appliedIndex)
            raft.applied(this.#context.appliedIndex);
        // Between two commands, as both go through the same keys.
        const isOver = () => visits.count >= end && !faults.sweptInOneTurn;
        while (!this.isApplying && !isOver() && this.#context.state.revisions.hasGarbage)
            this.#sweep();
    }
    /** False if there is nothing to do. */
    #step() {
        this.#applying ??= this.#begin();
        if (this.#applying === undefined)
            return false;
        const { entry, steps } = this.#applying;
        const step = steps.next();
        if (step.done !== true)
            return true;
        this.#applying = undefined;
        this.#context.appliedIndex = entry.index;
        this.#listener.applied(step.value);
        return true;
    }
    #begin() {
        const entry = this.#entries[this.#next];
        if (entry === undefined)
            return undefined;
        this.#next += 1;
        this.#listener.reached(entry.term);
        return { entry, steps: this.#apply(entry) };
    }
    *#apply(entry) {
        if (entry.kind !== "normal" || entry.data.length === 0)
            return { entry, command: undefined, applied: undefined };
        const command = readCommand(entry.index, entry.data);
        const { limits, state } = this.#context;
        if (faults.commandsInOneTurn)
            return { entry, command, applied: state.apply(command, entry.term) };
        const answerBytes = this.#listener.isAwaited(command) ? limits.answerBytesMax : -1;
        return { entry, command, applied: yield* state.applying(command, entry.term, answerBytes) };
    }
    #sweep() {
        this.#sweeping ??= this.#context.state.revisions.sweep();
        if (this.#sweeping.next().done === true)
            this.#sweeping = undefined;
    }
}
/**
 * Deeper than any command that was ever taken: a request within its own bound (100, and `nestingMax` in transactions) is one
 * deeper here. What stands in the log has to be readable for ever.
 */
const commandDepthMax = 200;
/** What who decodes takes by default, a client's request as well. */
const decoderDepth = 100;
function readCommand(index, data) {
    try {
        return fromBinary(CommandSchema, data, {
            recursionLimit: faults.budgetOfEachLevel ? decoderDepth : commandDepthMax,
        });
    }
    catch (error) {
        throw new LeaseholdError("LOG_CORRUPT", `entry ${index} of the log is no command`, { cause: error });
    }
}
