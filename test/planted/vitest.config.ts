import { defineConfig } from "vitest/config";
import { alias, plugins } from "../../vitest.config.js";

/**
 * All tests that may have to catch a planted mistake, with one process for each file, since a mistake is
 * planted when a process starts.
 */
export default defineConfig({
  resolve: { alias },
  plugins,
  test: {
    root: new URL("../..", import.meta.url).pathname,
    deps: { interopDefault: false },
    include: ["packages/*/src/**/*.test.ts", "test/*.test.ts", "test/realtime/*.test.ts"],
    setupFiles: ["test/support/bounded-properties.ts"],
    testTimeout: 120_000,
    expect: { poll: { timeout: 20_000 } },
    maxConcurrency: 8,
    fileParallelism: false,
    bail: 1,
  },
});
