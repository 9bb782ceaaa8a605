import { holdSignals } from "../common/signals.js";

// Called before anything else is loaded: a signal to a whole service also reaches the guard.
holdSignals();
void import("./guard-process.js").then(({ beGuard }) => beGuard());
