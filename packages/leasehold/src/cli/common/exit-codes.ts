import type { ErrorCode } from "../../lease/errors.js";
import { shortageExitCode } from "./shortage.js";

/**
 * All exit codes of the command line except those of the child. `docs/cli.md` and `--help` show this table.
 */
export const exitCodes = [
  { code: 0, name: "ok", meaning: "done" },
  { code: 1, name: "unexpected", meaning: "something that should not happen; the message says what" },
  { code: 2, name: "usage", meaning: "unknown option, bad value, or a configuration that is refused" },
  { code: 66, name: "missing", meaning: "files: there is no such file" },
  {
    code: 69,
    name: "unavailable",
    meaning: "no member or store could be reached, or no majority of them answered (doctor: not all did)",
  },
  {
    code: shortageExitCode,
    name: "exhausted",
    meaning:
      "this process or machine may open no more files (EMFILE, ENFILE); run: the command was not started",
  },
  {
    code: 75,
    name: "conflict",
    meaning:
      "another holds the lease: at once with --try, else after --wait; or the handle of --attach is spent (run: --conflict-exit-code)",
  },
  {
    code: 76,
    name: "lost",
    meaning: "the lease was lost, or was about to be, and the command was ended (run: --lost-exit-code)",
  },
  {
    code: 77,
    name: "refused",
    meaning:
      "the members are of another cluster, with other settings, version or time, or refuse our credentials",
  },
  {
    code: 78,
    name: "unfit",
    meaning:
      "a store is not suitable for leases; doctor: member clocks or round trips don't fit the settings; cert show: a certificate is unusable or expires soon",
  },
  {
    code: 80,
    name: "violation",
    meaning: "sim: an invariant of the protocol did not hold; check: a rule was broken",
  },
  {
    code: 81,
    name: "stuck",
    meaning: "sim: no progress; sim and check: nothing happened that would prove anything",
  },
  {
    code: 82,
    name: "unreadable",
    meaning: "check: a journal cannot be read or believed, so nothing was judged",
  },
  { code: 126, name: "notExecutable", meaning: "run: the command is there but cannot be executed" },
  { code: 127, name: "notFound", meaning: "run: there is no such command" },
] as const;

export type ExitName = (typeof exitCodes)[number]["name"];

const codeByName = new Map<string, number>(exitCodes.map(({ name, code }) => [name, code]));

export function exitCode(name: ExitName): number {
  return codeByName.get(name) as number;
}

/** A shell reports the death of a process by a signal as 128 plus the signal's number. */
export const SIGNAL_BASE = 128;

/** The exit code for each error code of the library. Codes that are added there must be added here. */
const exitByErrorCode: Record<ErrorCode, ExitName> = {
  LEASE_LOST: "lost",
  LEASE_HELD: "conflict",
  LEASE_BROKEN: "conflict",
  RELEASE_REQUESTED: "conflict",
  NO_QUORUM: "unavailable",
  TIMEOUT: "conflict",
  RESOURCES_FULL: "unavailable",
  OVERLOADED: "unavailable",
  CLOCK_SKEW: "refused",
  INVALID_NAME: "usage",
  INVALID_HANDLE: "usage",
  HANDLE_SPENT: "conflict",
  INVALID_DURATION: "usage",
  TTL_OUT_OF_RANGE: "usage",
  INVALID_CONFIG: "usage",
  INVALID_URL: "usage",
  NOT_WAITING: "conflict",
  TOO_MANY_WAITERS: "unexpected",
  WATCH_TOO_WIDE: "usage",
  UNSUPPORTED: "usage",
  CLUSTER_MISMATCH: "refused",
  CONFIG_MISMATCH: "refused",
  VERSION_MISMATCH: "refused",
  UNAUTHENTICATED: "refused",
  PERMISSION_DENIED: "refused",
  UNREACHABLE: "unavailable",
  STORE_UNAVAILABLE: "unavailable",
  STORE_FULL: "unavailable",
  STORE_READ_ONLY: "refused",
  STORE_PERMISSION: "refused",
  STORE_FOREIGN: "refused",
  STORE_CORRUPT: "refused",
  STORE_FORGOTTEN: "refused",
  LOG_CORRUPT: "refused",
  STORE_UNFIT: "unfit",
  INVALID_PATH: "usage",
  INVALID_RANGE: "usage",
  FILE_NOT_FOUND: "missing",
  FILE_EXISTS: "conflict",
  FILE_CHANGED: "conflict",
  QUOTA_EXCEEDED: "refused",
  CURSOR_GONE: "refused",
  FILE_UNCERTAIN: "unavailable",
  FILE_DAMAGED: "unavailable",
  DISK_FAILED: "unexpected",
  MEMBER_REMOVED: "refused",
  DATA_IN_USE: "refused",
  CLOSED: "unexpected",
  BAD_HISTORY: "unreadable",
};

export function exitCodeOfError(code: ErrorCode): number {
  return exitCode(exitByErrorCode[code]);
}

/** The table as lines of text, for `--help`. */
export function exitCodeLines(): string[] {
  const rows = exitCodes.map(({ code, meaning }) => `  ${String(code).padEnd(6)}${meaning}`);
  return [...rows, `  ${`${SIGNAL_BASE}+n`.padEnd(6)}ended by signal n, as a shell reports it`];
}
