import { defineConfig } from "vitest/config";
import { alias, plugins } from "./vitest.config.js";

/** Clients of etcd against ours and Debian's real etcd in one go, what they say compared. */
export default defineConfig({
  resolve: { alias },
  plugins,
  test: {
    // CommonJS looks as it does in Node.
    deps: { interopDefault: false },
    include: ["test/etcd/**/*.test.ts"],
    globalSetup: ["test/core/support/install-etcd.ts"],
    testTimeout: 120_000,
    hookTimeout: 60_000,
    fileParallelism: false,
  },
});
