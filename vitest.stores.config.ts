import { defineConfig } from "vitest/config";
import { alias, plugins } from "./vitest.config.js";

/** Real servers, devices and processes that are killed, one file after another. */
export default defineConfig({
  resolve: { alias },
  plugins,
  test: {
    include: ["test/stores/**/*.test.ts"],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    fileParallelism: false,
    // Real devices on a machine that may be busy: what fails twice is wrong.
    retry: process.env["CI"] === undefined ? 0 : 1,
  },
});
