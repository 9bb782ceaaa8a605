import { defineConfig } from "vitest/config";
import { alias, randomTests } from "./vitest.config.js";

/** Seeds and virtual time: what fails here fails always. The time limits are for busy machines. */
export default defineConfig({
  resolve: { alias },
  test: {
    // CommonJS looks as it does in Node.
    deps: { interopDefault: false },
    include: randomTests,
    testTimeout: 300_000,
  },
});
