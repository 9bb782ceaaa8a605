import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Tests run the sources with the build that lets a test plant the protocol's known mistakes. */
export const alias = {
  "#faults": here("./src/flease/planted-faults.ts"),
  "leasehold/testing": here("./src/testing/index.ts"),
  leasehold: here("./src/index.ts"),
};

export default defineConfig({
  resolve: { alias },
  test: { include: ["src/**/*.test.ts", "test/*.test.ts"], testTimeout: 30_000 },
});
