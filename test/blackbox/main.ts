import { type StdioOptions, spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { parseArgs } from "node:util";
import { isFaketimeInstalled } from "../e2e/fake-clock.js";
import { product } from "./build.js";
import { Progress } from "./progress.js";
import { play } from "./run.js";
import { RunFolder } from "./run-folder.js";
import { selfTest } from "./self-test.js";
import { neededPackages } from "./site.js";
import { summarize, summaryLines } from "./summary.js";

/** `npm run blackbox`: real processes, real networks, real clocks, and faults for minutes or hours. */

const usage = `npm run blackbox -- [options]

  --minutes N     how long (default 10)
  --seed N        which faults, in which order (default: another each time)
  --members N     processes of "leasehold peer", 3 or 5 (default 3); two holders are members besides
  --journals DIR  an empty folder for the journals, which are kept (default: kept only if something is wrong)
  -o, --output F  "text" or "json"
  --self-test     builds with planted mistakes are caught, and a clock beyond its bound raises the alarm
  --install       installs Debian's packages iproute2, nftables and faketime if they are missing

It needs Linux and root.
`;

const exits = { clean: 0, violated: 80, void: 81, usage: 2 } as const;

/** Debian's names, as far as something is missing. */
function missingPackages(): string[] {
  const needed = Object.entries(neededPackages).filter(
    ([program]) => spawnSync(program, ["-V"], { stdio: "ignore" }).error !== undefined,
  );
  return [...needed.map(([, name]) => name), ...(isFaketimeInstalled ? [] : ["faketime"])];
}

class UsageError extends Error {}

function parse() {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "10" },
      seed: { type: "string" },
      members: { type: "string", default: "3" },
      journals: { type: "string" },
      output: { type: "string", short: "o", default: "text" },
      "self-test": { type: "boolean", default: false },
      install: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) throw new UsageError(`--minutes: a number above 0, and not "${values.minutes}"`);
  const seed = Number(values.seed ?? Math.floor(Math.random() * 1e9));
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new UsageError(`--seed: a whole number, and not "${values.seed}"`);
  const members = Number(values.members);
  if (members !== 3 && members !== 5) throw new UsageError(`--members: 3 or 5, and not "${values.members}"`);
  if (values.output !== "text" && values.output !== "json")
    throw new UsageError(`--output: text or json, and not "${values.output}"`);
  const { journals } = values;
  // A journal of another run would be noticed at the end only, when nothing can be judged any more.
  if (journals !== undefined && existsSync(journals) && readdirSync(journals).length > 0)
    throw new UsageError(`--journals: ${journals} is not empty`);
  return { ...values, minutes, seed, members };
}

function prepare(install: boolean): void {
  if (process.platform !== "linux" || process.getuid?.() !== 0)
    throw new UsageError("network namespaces need Linux and root");
  const missing = missingPackages();
  if (missing.length === 0) return;
  if (!install)
    throw new UsageError(`missing: ${missing.join(", ")}; install them, or say --install (Debian, Ubuntu)`);
  // Standard output is for the summary.
  const stdio: StdioOptions = ["ignore", 2, 2];
  spawnSync("apt-get", ["update"], { stdio });
  const run = spawnSync("apt-get", ["install", "-y", "--no-install-recommends", ...missing], { stdio });
  if (run.status !== 0) throw new UsageError(`apt-get could not install ${missing.join(", ")}`);
}

async function main(): Promise<number> {
  const options = parse();
  if (options.help) {
    process.stdout.write(usage);
    return exits.clean;
  }
  prepare(options.install);
  const progress = new Progress(process.stderr);
  if (options["self-test"]) return await selfTest(options.output, progress);
  const { minutes, seed, members } = options;
  const folder = new RunFolder(options.journals);
  process.stderr.write(`seed ${seed}\n`);
  const result = await play({ minutes, seed, members, build: product, folder }, progress);
  progress.clear();
  const summary = summarize(result, minutes);
  if (summary.verdict !== "clean") folder.keep();
  const lines = [...summaryLines(summary), ...(folder.isKept ? [`  journals: ${folder.path}`] : [])];
  const document = { ...summary, ...(folder.isKept && { journals: folder.path }) };
  process.stdout.write(options.output === "json" ? `${JSON.stringify(document)}\n` : `${lines.join("\n")}\n`);
  return exits[summary.verdict];
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(130));

try {
  process.exit(await main());
} catch (error) {
  const isUsage =
    error instanceof UsageError || (error as { code?: string }).code?.startsWith("ERR_PARSE_ARGS");
  process.stderr.write(`\n${isUsage === true ? (error as Error).message : (error as Error).stack}\n`);
  process.exit(isUsage === true ? exits.usage : 1);
}
