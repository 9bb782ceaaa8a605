import { AsyncLocalStorage } from "node:async_hooks";
import { channel } from "node:diagnostics_channel";
import { inspect } from "node:util";
import type { ProgramHooks } from "../common/ports.js";

/** How many times one kind of trouble is told of: a listener that always throws would fill the log. */
const warningsMax = 10;

const warned = new Map<string, number>();

/** What Node gives to programs that want to see into libraries. */
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
