import { holdSignals } from "../common/signals.js";

// Before anything else is loaded: a signal to a whole service also reaches the guard.
holdSignals();
void import("./guard-process.js").then(({ beGuard }) => beGuard());
