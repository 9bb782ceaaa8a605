import { holdSignals } from "../signals.js";

// Before anything else is loaded.
holdSignals();
await import("./work.js");
