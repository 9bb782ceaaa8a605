import { defineConfig } from "vitest/config";
import { alias } from "./vitest.config.js";

/** Real processes, one file after another: they start servers and measure time. */
export default defineConfig({
  resolve: { alias },
  test: {
    // CommonJS looks as it does in Node.
    deps: { interopDefault: false },
    include: ["test/e2e/**/*.test.ts"],
    testTimeout: 180_000,
    hookTimeout: 60_000,
    fileParallelism: false,
  },
});
