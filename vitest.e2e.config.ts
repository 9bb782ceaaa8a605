import { defineConfig } from "vitest/config";
import { alias, plugins } from "./vitest.config.js";

/** Real processes, one file after another: they start servers and measure time. */
export default defineConfig({
  resolve: { alias },
  plugins,
  test: {
    // CommonJS looks as it does in Node.
    deps: { interopDefault: false },
    include: ["test/e2e/**/*.test.ts"],
    // Real processes on a machine that may be busy: what fails twice is wrong.
    retry: process.env["CI"] === undefined ? 0 : 1,
    testTimeout: 180_000,
    hookTimeout: 60_000,
    fileParallelism: false,
  },
});
