import { type StdioOptions, spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { parseArgs } from "node:util";
import { isFaketimeInstalled } from "../e2e/fake-clock.js";
import { product } from "./build.js";
import { Progress } from "./progress.js";
import { playFiles } from "./files/run.js";
import { filesSelfTest } from "./files/self-test.js";
import { filesSummaryLines, summarizeFiles } from "./files/summary.js";
import { membersSummaryLines, playMembers } from "./members/run.js";
import { membersSelfTest } from "./members/self-test.js";
import { play } from "./run.js";
import { RunFolder } from "./run-folder.js";
import { formsSelfTests, leasesSelfTests, selfTest } from "./self-test.js";
import { forms } from "./settings.js";
import { neededPackages } from "./site.js";
import { summarize, summaryLines } from "./summary.js";

/** `npm run blackbox`: real processes, networks and clocks, with faults for minutes or hours. */

const usage = `npm run blackbox -- [options]

  --minutes N     how long (default 10)
  --seed N        which faults, in which order (default: another each time)
  --play P        "leases" (default), "forms": readers and writers, counted leases, several at once and lines,
                  "files": three nodes of replicated files, or "members": three to five members that come and go
  --members N     processes of "leasehold peer", 3 or 5 (default 3); two holders are members besides
  --journals DIR  an empty folder for the journals, which are kept (default: kept only if something is wrong)
  -o, --output F  "text" or "json"
  --self-test     builds with planted mistakes are caught, and a clock beyond its bound raises the alarm
  --install       installs Debian's packages iproute2, nftables and faketime if they are missing

It needs Linux and root.
`;

const exits = { clean: 0, violated: 80, void: 81, usage: 2 } as const;

/** The Debian packages of missing programs. */
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
      play: { type: "string", default: "leases" },
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
  if (!Object.hasOwn(plays, values.play))
    throw new UsageError(`--play: ${Object.keys(plays).join(", ")}, and not "${values.play}"`);
  const { journals } = values;
  // Journals of another run would be noticed only at the end, when nothing can be judged any more.
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
  // Standard output is reserved for the summary.
  const stdio: StdioOptions = ["ignore", 2, 2];
  spawnSync("apt-get", ["update"], { stdio });
  const run = spawnSync("apt-get", ["install", "-y", "--no-install-recommends", ...missing], { stdio });
  if (run.status !== 0) throw new UsageError(`apt-get could not install ${missing.join(", ")}`);
}

type Play = "leases" | "forms" | "files" | "members";

interface Played {
  readonly summary: { readonly verdict: "clean" | "violated" | "void" };
  /** The summary as text lines. */
  readonly told: readonly string[];
}

const plays: Record<
  Play,
  (minutes: number, seed: number, members: number, folder: RunFolder, progress: Progress) => Promise<Played>
> = {
  leases: async (minutes, seed, members, folder, progress) => {
    const result = await play({ minutes, seed, members, build: product, folder }, progress);
    const summary = summarize(result, minutes);
    return { summary, told: summaryLines(summary) };
  },
  forms: async (minutes, seed, members, folder, progress) => {
    const result = await play({ minutes, seed, members, build: product, tasks: forms, folder }, progress);
    const summary = summarize(result, minutes);
    return { summary, told: summaryLines(summary) };
  },
  files: async (minutes, seed, _members, folder, progress) => {
    const result = await playFiles({ minutes, seed, build: product, folder }, progress);
    const summary = summarizeFiles(result, minutes);
    return { summary, told: filesSummaryLines(summary) };
  },
  members: async (minutes, seed, _members, folder, progress) => {
    const summary = await playMembers({ minutes, seed, build: product, folder }, progress);
    return { summary, told: membersSummaryLines(summary) };
  },
};

async function main(): Promise<number> {
  const options = parse();
  if (options.help) {
    process.stdout.write(usage);
    return exits.clean;
  }
  prepare(options.install);
  const progress = new Progress(process.stderr);
  if (options["self-test"]) {
    const { output } = options;
    const tests: Record<Play, () => Promise<number>> = {
      leases: () => selfTest(leasesSelfTests, output, progress),
      forms: () => selfTest(formsSelfTests, output, progress),
      files: () => filesSelfTest(output, progress),
      members: () => membersSelfTest(output, progress),
    };
    return await tests[options.play as Play]();
  }
  const { minutes, seed, members } = options;
  const folder = new RunFolder(options.journals);
  process.stderr.write(`seed ${seed}\n`);
  const playing = plays[options.play as Play](minutes, seed, members, folder, progress);
  const { summary, told } = await playing.catch((error: unknown) => {
    folder.keep();
    process.stderr.write(`\njournals: ${folder.path}\n`);
    throw error;
  });
  if (summary.verdict !== "clean") folder.keep();
  progress.clear();
  const lines = [...told, ...(folder.isKept ? [`  journals: ${folder.path}`] : [])];
  const document = { ...summary, ...(folder.isKept && { journals: folder.path }) };
  process.stdout.write(options.output === "json" ? `${JSON.stringify(document)}\n` : `${lines.join("\n")}\n`);
  return exits[summary.verdict];
}

// Every run of a self-test registers a clean-up at the exit of this process.
process.setMaxListeners(100);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(130));

try {
  process.exit(await main());
} catch (error) {
  const isUsage =
    error instanceof UsageError || (error as { code?: string }).code?.startsWith("ERR_PARSE_ARGS");
  process.stderr.write(`\n${isUsage === true ? (error as Error).message : (error as Error).stack}\n`);
  process.exit(isUsage === true ? exits.usage : 1);
}
