import fc from "fast-check";
import { seedOf } from "./seed.js";

/**
 * Properties are tried with the same values in each run: see `seed.ts`. The limit bounds the shrinking of a
 * failing property, since time limits of tests don't end code that never yields. On a busy machine a property
 * may end with fewer runs; it has then passed with those.
 */
fc.configureGlobal({ interruptAfterTimeLimit: 300_000, seed: seedOf() });
