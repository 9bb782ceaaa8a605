import { defineConfig } from "vitest/config";
import { alias, harderTests, randomTests, plugins } from "./vitest.config.js";

/** Seeds and virtual time: what fails here fails always. The time limits are for busy machines. */
export default defineConfig({
  resolve: { alias },
  plugins,
  test: {
    // CommonJS looks as it does in Node.
    deps: { interopDefault: false },
    include: [...randomTests, ...harderTests],
    env: { LEASEHOLD_EFFORT: process.env["LEASEHOLD_EFFORT"] ?? "10" },
    testTimeout: 300_000,
  },
});
