import { defineConfig } from "vitest/config";
import { alias, plugins, realTimeTests } from "./vitest.config.js";

/**
 * The conformance suite and others in real time, over real sockets, directories and timers. A machine that is busy makes leases of a second
 * run out, so these are no part of `npm test`, and one that fails is tried again; what is about safety runs in virtual time.
 */
export default defineConfig({
  resolve: { alias },
  plugins,
  test: {
    // CommonJS looks as it does in Node.
    deps: { interopDefault: false },
    include: realTimeTests,
    setupFiles: ["test/support/bounded-properties.ts"],
    testTimeout: 60_000,
    // Of a busy machine; what hangs is found, too.
    expect: { poll: { timeout: 20_000 } },
    // They spend their time asleep, and at the same disk.
    maxConcurrency: 8,
    fileParallelism: false,
    retry: 2,
  },
});
