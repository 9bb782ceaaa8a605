import { defineConfig } from "vitest/config";
import { alias, plugins } from "./vitest.config.js";

/** Replicated files as real processes, and clients of WebDAV that others have written. */
export default defineConfig({
  resolve: { alias },
  plugins,
  test: {
    include: ["test/files/**/*.test.ts"],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    fileParallelism: false,
  },
});
