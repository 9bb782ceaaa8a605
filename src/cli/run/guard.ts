import { holdSignals } from "../common/signals.js";

// Before anything else is loaded: whoever ends a whole service also meets the guard.
holdSignals();
await import("./guard-process.js");
