import { defineConfig } from "vitest/config";
import { alias, harderTests, randomTests, plugins } from "./vitest.config.js";

/**
 * Seeds and virtual time: what fails here fails always. `npm run test:random` draws new seeds for properties. The time limits are for busy
 * machines.
 */
export default defineConfig({
  resolve: { alias },
  plugins,
  test: {
    // CommonJS looks as it does in Node.
    deps: { interopDefault: false },
    include: [...randomTests, ...harderTests],
    setupFiles: ["test/support/bounded-properties.ts"],
    env: { LEASEHOLD_EFFORT: process.env["LEASEHOLD_EFFORT"] ?? "10" },
    testTimeout: 300_000,
  },
});
