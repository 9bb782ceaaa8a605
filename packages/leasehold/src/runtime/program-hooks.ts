import { AsyncLocalStorage } from "node:async_hooks";
import { channel } from "node:diagnostics_channel";
import { inspect } from "node:util";
import type { ProgramHooks } from "../common/ports.js";

/** Warnings of one kind that are printed: a listener that always throws would fill the log. */
const warningsMax = 10;

const warned = new Map<string, number>();

/** Node's hooks for programs that observe libraries. */
export const programHooks: ProgramHooks = {
  snapshot: () => AsyncLocalStorage.snapshot(),
  channel: (name) => channel(name),
  warn: (what, error) => {
    const count = (warned.get(what) ?? 0) + 1;
    if (count > warningsMax) return;
    warned.set(what, count);
    process.emitWarning(what, { type: "LeaseholdWarning", detail: inspect(error) });
  },
};
