import { AsyncLocalStorage } from "node:async_hooks";
import { channel } from "node:diagnostics_channel";
import { inspect } from "node:util";
import type { ProgramHooks } from "../common/ports.js";

/**
 * The maximum number of printed warnings of one kind: a listener that always throws would otherwise fill the
 * log.
 */
const warningsMax = 10;

const warned = new Map<string, number>();

/** Node's hooks, with which programs observe libraries. */
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
