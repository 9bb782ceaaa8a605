import { defineConfig } from "vitest/config";

/** The packed file with the tools that people build and test with: they are installed, so this needs npm's registry. */
export default defineConfig({
  test: {
    include: ["test/packaged/*.test.ts"],
    testTimeout: 400_000,
    hookTimeout: 400_000,
    maxConcurrency: 2,
    fileParallelism: false,
  },
});
