import { defineConfig } from "vitest/config";
import { alias, plugins } from "./vitest.config.js";

/** Servers of the core as real processes, beside real ones of etcd; one file after another. */
export default defineConfig({
  resolve: { alias },
  plugins,
  test: {
    // CommonJS looks as it does in Node.
    deps: { interopDefault: false },
    include: ["test/core/**/*.test.ts"],
    globalSetup: ["test/core/support/install-etcd.ts"],
    testTimeout: 120_000,
    hookTimeout: 180_000,
    fileParallelism: false,
  },
});
