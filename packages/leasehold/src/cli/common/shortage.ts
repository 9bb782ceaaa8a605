/** `EX_OSERR` of sysexits.h: the system lacks resources that every command needs. */
export const shortageExitCode = 71;

const shortages: Readonly<Record<string, string>> = {
  EMFILE: "too many open files: this process may have no more; raise its limit (ulimit -n)",
  ENFILE: "too many open files: this machine has no more for anybody",
};

/**
 * The message for a lack of file descriptors. This module imports no other, which could not be loaded then.
 */
export function shortageOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return Object.hasOwn(shortages, code) ? `${code}: ${shortages[code]}` : undefined;
}
