import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { alias } from "./vitest.config.js";

/** One mistake as text, planted when its file is loaded; see scripts/mutants.mjs. */
interface Mutant {
  readonly file: string;
  readonly edits: readonly (readonly [find: string, replace: string])[];
}
const { file, edits } = JSON.parse(
  process.env["LEASEHOLD_MUTANT"] ?? '{ "file": "", "edits": [] }',
) as Mutant;
const path = fileURLToPath(new URL(file, import.meta.url));

export default defineConfig({
  resolve: { alias },
  plugins: [
    {
      name: "mutant",
      enforce: "pre",
      transform: (code, id) =>
        id === path
          ? edits.reduce((text, [find, replace]) => text.replace(find, () => replace), code)
          : undefined,
    },
  ],
  test: {
    deps: { interopDefault: false },
    include: ["src/**/*.test.ts", "sim/**/*.test.ts", "test/*.test.ts"],
    testTimeout: 120_000,
  },
});
