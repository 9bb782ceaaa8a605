import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type CoreFlags, type RunningCore, startCore } from "../index.js";
import { backupStatus, configOf, restoreBackup, restoredText } from "../server/index.js";
import type { Logger } from "leasehold/runtime";
import { exitCode, notifySystemd, printError, printLine, stopRequested, usageError } from "leasehold/cli";

/** Timeout of a clean stop; then the process exits anyway. */
const closeMsMax = 5_000;

type Say = (line: string) => unknown;

const levels = ["debug", "info", "warn", "error"];

interface Output {
  readonly say: Say;
  readonly warn: Say;
}

/** @throws LeaseholdError `INVALID_CONFIG` */
function outputOf(name: string): Output {
  const known: Readonly<Record<string, Output>> = {
    default: { say: printLine, warn: printError },
    stdout: { say: printLine, warn: printLine },
    stderr: { say: printError, warn: printError },
  };
  const found = Object.hasOwn(known, name) ? known[name] : undefined;
  if (found !== undefined) return found;
  // A name without a slash is more likely a mistake than a file.
  if (!name.includes("/"))
    throw usageError(
      `--log-outputs has ${JSON.stringify(name)}: default, stdout, stderr, or the path of a file with a "/" in it`,
    );
  // Opened for each line, so that log rotation can move the file.
  const write = (line: string) => appendFileSync(name, `${new Date().toISOString()} ${line}\n`);
  try {
    appendFileSync(name, "");
  } catch (error) {
    throw usageError(`--log-outputs: ${(error as Error).message}`);
  }
  const say = (line: string) => {
    try {
      write(line);
    } catch (error) {
      // A full disk is no reason to stop.
      printError(`${name} cannot be written: ${(error as Error).message}: ${line}`);
    }
  };
  return { say, warn: say };
}

/** @throws LeaseholdError `INVALID_CONFIG` */
function loggerOf({ logLevel = "info", logOutputs = "default" }: CoreFlags): Logger {
  const least = levels.indexOf(logLevel);
  if (least === -1) throw usageError(`--log-level is ${JSON.stringify(logLevel)}: ${levels.join(", ")}`);
  const outputs = logOutputs.split(",").map((name) => outputOf(name.trim()));
  const say = (line: string) => {
    for (const output of outputs) output.say(line);
  };
  const warn = (line: string) => {
    for (const output of outputs) output.warn(line);
  };
  const from = (level: string, write: (text: string) => unknown) =>
    levels.indexOf(level) < least ? () => undefined : (text: string) => void write(text);
  return {
    info: from("info", say),
    warn: from("warn", (message) => warn(`warning: ${message}`)),
    error: from("error", warn),
  };
}

function leaderCheck({ hasLeader }: RunningCore) {
  const detail = hasLeader ? "known" : "none is known: a majority of the servers is needed";
  return { name: "leader", isPassed: hasLeader, detail };
}

/** `leasehold core`: one server, until a signal or a fatal error. */
export async function core(flags: CoreFlags): Promise<number> {
  const stopped = stopRequested();
  const logger = loggerOf(flags);
  const starting = startCore({ ...flags, logger });
  const server = await Promise.race([starting, stopped]);
  // It serves no client yet, and its disk survives a crash.
  if (server === undefined) {
    starting.catch(() => undefined);
    return exitCode("ok");
  }
  logger.info(`${server.name} (${server.id.toString(16)}) serves clients at ${server.clientUrls.join(",")}`);
  const systemd = notifySystemd({ checks: () => [leaderCheck(server)] });
  await Promise.race([stopped, server.failed]);
  systemd.stopping();
  await Promise.race([server.close(), sleep(closeMsMax)]);
  return exitCode("ok");
}

export interface BackupFlags {
  readonly skipHashCheck?: boolean;
}

/** `leasehold core restore`: creates a data directory of a new core. */
export async function restore(file: string, flags: CoreFlags, options: BackupFlags): Promise<number> {
  const config = configOf(flags);
  printLine(restoredText(await restoreBackup(file, config, options), config.dataDir));
  return exitCode("ok");
}

/** `leasehold core snapshot status`. */
export async function snapshotStatus(file: string, isJson: boolean, options: BackupFlags): Promise<number> {
  const status = await backupStatus(file, options);
  const { hash, revision, totalKey, totalSize } = status;
  if (isJson) printLine(JSON.stringify(status));
  else {
    const facts = { hash: hash.toString(16), revision, "total keys": totalKey, "total size": totalSize };
    for (const [name, value] of Object.entries(facts)) printLine(`${name}: ${value}`);
  }
  return exitCode("ok");
}
