import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { alias } from "./vitest.config.js";

/** One mistake as text, planted when its file is loaded; see scripts/mutants.mjs. */
const mutant = JSON.parse(process.env["LEASEHOLD_MUTANT"] ?? "{}") as Partial<Record<string, string>>;
const { file = "", find = "", replace = "" } = mutant;
const path = fileURLToPath(new URL(file, import.meta.url));

export default defineConfig({
  resolve: { alias },
  plugins: [
    {
      name: "mutant",
      enforce: "pre",
      transform: (code, id) => (id === path ? code.replace(find, () => replace) : undefined),
    },
  ],
  test: {
    deps: { interopDefault: false },
    include: ["src/**/*.test.ts", "test/*.test.ts"],
    testTimeout: 60_000,
  },
});
