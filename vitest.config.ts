import { fileURLToPath } from "node:url";
import { relative } from "node:path";
import { defineConfig } from "vitest/config";
import { mistakes } from "./test/planted/mistakes/table.mjs";
import { plant } from "./test/planted/plant.mjs";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** What the sources and tests of this build import by a name. */
export const alias = {
  "#planted": here("./test/planted/switches.ts"),
  "leasehold/testing": here("./src/testing/index.ts"),
  "leasehold/provider": here("./src/entry/provider.ts"),
  leasehold: here("./src/index.ts"),
};

const root = here(".");
/** Every source with its mistakes behind switches. */
export const plugins = [
  {
    name: "planted-mistakes",
    enforce: "pre" as const,
    transform: (code: string, id: string) => plant(code, relative(root, id), mistakes),
  },
];

/** Random runs of the simulators, and the tables of planted mistakes: minutes of processor time, with a command of their own. */
export const randomTests = [
  "sim/**/*.test.ts",
  "src/cli/commands/sim-modes.test.ts",
  "test/planted-*.test.ts",
];

/** Parts of `npm test` that try harder by `LEASEHOLD_EFFORT`: see `test/support/effort.ts`. */
export const harderTests = [
  "src/core/raft/chaos.test.ts",
  "src/delta/conditional/exclusion.property.test.ts",
  "src/delta/paper/conformance.test.ts",
  "src/flease/tcp/wire/fuzz.test.ts",
];

export default defineConfig({
  resolve: { alias },
  plugins,
  test: {
    // CommonJS looks as it does in Node.
    deps: { interopDefault: false },
    setupFiles: ["test/support/bounded-properties.ts"],
    // One for each processor; vitest would keep one free.
    maxWorkers: "100%",
    include: ["src/**/*.test.ts", "test/*.test.ts"],
    exclude: randomTests,
    testTimeout: 30_000,
    // What runs concurrently here spends its time asleep.
    maxConcurrency: 20,
    // Some tests here measure real time on machines that others use too. What is about safety runs on seeds and in
    // virtual time, and fails both times.
    retry: process.env["CI"] === undefined ? 0 : 1,
  },
});
