import { defineConfig } from "vitest/config";
import { alias, plugins, processTests } from "./vitest.config.js";

/** Commands, examples and clusters as users start them: real processes, several files at once. */
export default defineConfig({
  resolve: { alias },
  plugins,
  test: {
    // CommonJS looks as it does in Node.
    deps: { interopDefault: false },
    include: processTests,
    maxWorkers: "100%",
    // What runs concurrently here spends its time asleep.
    maxConcurrency: 20,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    // Real processes on a machine that may be busy: what fails twice is wrong.
    retry: process.env["CI"] === undefined ? 0 : 1,
  },
});
