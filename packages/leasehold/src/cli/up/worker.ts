import { holdSignals } from "../common/signals.js";

// Before anything else is loaded.
holdSignals();
await import("./work.js");
