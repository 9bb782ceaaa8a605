import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { relative } from "node:path";
import { defineConfig } from "vitest/config";
import { mistakes } from "./test/planted/mistakes/table.mjs";
import { plant } from "./test/planted/plant.mjs";
import { seedOf } from "./test/support/seed.js";

// One for the whole run: the processes that run tests inherit it. The other configurations import this one.
process.env["LEASEHOLD_SEED"] = String(seedOf());

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const leasehold = here("./packages/leasehold/src");
/** What the sources and tests of this build import by a name: the sources, and not what is built. */
export const alias = [
  { find: "#planted", replacement: here("./test/planted/switches.ts") },
  { find: /^leasehold$/, replacement: `${leasehold}/index.ts` },
  { find: /^leasehold\/testing$/, replacement: `${leasehold}/testing/index.ts` },
  { find: /^leasehold\/(etcd\/gen\/.*)\.js$/, replacement: `${leasehold}/$1.ts` },
  { find: /^leasehold\/inner\/(.*)\.js$/, replacement: `${leasehold}/$1.ts` },
  { find: /^leasehold\/(common|runtime|cli)$/, replacement: `${leasehold}/shared/$1.ts` },
  { find: /^leasehold\/([a-z]+)$/, replacement: `${leasehold}/entry/$1.ts` },
  { find: /^@leasehold\/(\w+)\/inner\/(.*)\.js$/, replacement: `${here("./packages")}/$1/src/$2.ts` },
  { find: /^@leasehold\/(\w+)\/command$/, replacement: `${here("./packages")}/$1/src/command/$1-command.ts` },
  { find: /^@leasehold\/(\w+)$/, replacement: `${here("./packages")}/$1/src/index.ts` },
];

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
export const randomTests = ["packages/sim/src/**/*.test.ts", "test/planted-*.test.ts"];

/** Parts of `npm test` that try harder by `LEASEHOLD_EFFORT`: see `test/support/effort.ts`. */
export const harderTests = [
  "packages/core/src/journal/journal.test.ts",
  "packages/core/src/server/disk/member-file.test.ts",
  "packages/core/src/raft/chaos.test.ts",
  "packages/core/src/replica/watch-hub.test.ts",
  "packages/core/src/server/backup/damaged-file.test.ts",
  "packages/core/src/server/disk/power-loss.test.ts",
  "packages/core/src/server/api/recipes/recipes.test.ts",
  "packages/core/src/server/wire/first-bytes.test.ts",
  "packages/core/src/server/api/http/fuzz.test.ts",
  "packages/core/src/server/api/http/json-message.test.ts",
  "packages/leasehold/src/delta/conditional/exclusion.property.test.ts",
  "packages/leasehold/src/delta/paper/conformance.test.ts",
  "packages/leasehold/src/delta/provider/cancellation.test.ts",
  "packages/leasehold/src/flease/overload.test.ts",
  "packages/leasehold/src/flease/tcp/wire/fuzz.test.ts",
  "packages/leasehold/src/stores/block/slots.property.test.ts",
  "test/tenure-data.property.test.ts",
];

/** Sockets, timers and directories in real time: a busy machine makes short leases run out. */
export const realTimeTests = ["packages/*/src/**/*.realtime.test.ts", "test/realtime/*.test.ts"];

/** Commands, examples and clusters as real processes. */
export const processTests = ["packages/*/src/**/*.processes.test.ts", "test/processes/*.test.ts"];

const include = ["packages/*/src/**/*.test.ts", "test/*.test.ts"];
const exclude = ["**/node_modules/**", ...randomTests, ...realTimeTests, ...processTests];

/**
 * What replaces a module must load all modules anew, and what replaces the timers must not find those that
 * another file left behind; to do so for each file would take a third of the time.
 */
const replacing = readdirSync(here("./packages"), { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".test.ts"))
  .map((path) => `packages/${path}`)
  .filter((path) => /\bvi\.(mock|useFakeTimers|stubEnv)\(/.test(readFileSync(here(path), "utf8")));

/** Virtual time, or events: nothing here may depend on how busy the machine is, and nothing is tried again. */
export default defineConfig({
  resolve: { alias },
  plugins,
  test: {
    // CommonJS looks as it does in Node.
    deps: { interopDefault: false },
    setupFiles: ["test/support/bounded-properties.ts"],
    // One for each processor; vitest would keep one free.
    maxWorkers: "100%",
    // For a machine that is very busy: what hangs is found, too.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      {
        extends: true,
        test: { name: "shared", include, exclude: [...exclude, ...replacing], isolate: false },
      },
      { extends: true, test: { name: "isolated", include: replacing, exclude } },
    ],
  },
});
