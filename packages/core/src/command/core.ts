import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type CoreFlags, type RunningCore, startCore } from "../index.js";
import { backupStatus, configOf, eventLog, restoreBackup, restoredText } from "../server/index.js";
import { type Logger, logFormats, type LogLevel, logLevels } from "leasehold/runtime";
import {
  usageError,
  exitCode,
  lineLogger,
  notifySystemd,
  printError,
  printErrorLine,
  printLine,
  stopRequested,
} from "leasehold/cli";

/** Timeout of a clean stop, ms. The process exits after it in any case. */
const closeMsMax = 5_000;

type Say = (line: string) => unknown;

/** Messages from this level on go to the error output. */
const warnLevel = logLevels.indexOf("warn");

interface Output {
  readonly say: Say;
  readonly warn: Say;
}

/** @throws LeaseholdError `INVALID_CONFIG` */
function outputOf(name: string): Output {
  const known: Readonly<Record<string, Output>> = {
    default: { say: printLine, warn: printErrorLine },
    stdout: { say: printLine, warn: printLine },
    stderr: { say: printErrorLine, warn: printErrorLine },
  };
  const found = Object.hasOwn(known, name) ? known[name] : undefined;
  if (found !== undefined) return found;
  // A name without a slash is more likely a mistake than a file.
  if (!name.includes("/"))
    throw usageError(
      `--log-outputs has ${JSON.stringify(name)}: default, stdout, stderr, or the path of a file with a "/" in it`,
    );
  // Reopened for each line, so that log rotation can move the file.
  const write = (line: string) => appendFileSync(name, `${line}\n`);
  try {
    appendFileSync(name, "");
  } catch (error) {
    throw usageError(`--log-outputs: ${(error as Error).message}`);
  }
  const say = (line: string) => {
    try {
      write(line);
    } catch (error) {
      // A full disk does not stop the server.
      printError(`${name} cannot be written: ${(error as Error).message}: ${line}`);
    }
  };
  return { say, warn: say };
}

/** @throws LeaseholdError `INVALID_CONFIG` */
function loggerOf({ logFormat = "text", logLevel = "info", logOutputs = "default" }: CoreFlags): Logger {
  const level = logLevels.find((known) => known === logLevel);
  if (level === undefined)
    throw usageError(`--log-level is ${JSON.stringify(logLevel)}: ${logLevels.join(", ")}`);
  // etcd's name for text is "console".
  const format = logFormats.find((known) => known === logFormat.replace("console", "text"));
  if (format === undefined)
    throw usageError(`--log-format is ${JSON.stringify(logFormat)}: ${logFormats.join(", ")}`);
  const outputs = logOutputs.split(",").map((name) => outputOf(name.trim()));
  const write = (line: string, of: LogLevel) => {
    for (const { say, warn } of outputs) (logLevels.indexOf(of) < warnLevel ? say : warn)(line);
  };
  return lineLogger({ format, level, write });
}

function leaderCheck({ hasLeader }: RunningCore) {
  const detail = hasLeader ? "known" : "none is known: a majority of the servers is needed";
  return { name: "leader", isPassed: hasLeader, detail };
}

/** `leasehold core`: one server, until a signal or a fatal error. */
export async function core(flags: CoreFlags, warnings: readonly string[]): Promise<number> {
  const stopped = stopRequested();
  const logger = loggerOf(flags);
  const events = eventLog(logger);
  for (const warning of warnings) events.log("setting-ignored", warning, {});
  const starting = startCore({ ...flags, logger });
  const server = await Promise.race([starting, stopped]);
  // The server has no clients yet, and its disk survives a crash.
  if (server === undefined) {
    starting.catch(() => undefined);
    return exitCode("ok");
  }
  const [id, urls] = [server.id.toString(16), server.clientUrls.join(",")];
  const { name } = server;
  const text = `${name} (${id}) serves clients at ${urls}`;
  events.log("core-serving", text, { server: name, id, urls });
  const systemd = notifySystemd({ checks: () => [leaderCheck(server)] });
  await Promise.race([stopped, server.failed]);
  events.log("core-stopping", `${name} was told to stop`, { server: name });
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
