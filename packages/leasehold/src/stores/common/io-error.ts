import { type ErrorCode, LeaseholdError } from "../../lease/errors.js";

/**
 * What the operating system says, as the codes of stores. Everything else is a store that cannot be used at
 * the moment.
 */
const codes: Readonly<Record<string, ErrorCode>> = {
  ENOSPC: "STORE_FULL",
  EDQUOT: "STORE_FULL",
  EFBIG: "STORE_FULL",
  EMLINK: "STORE_FULL",
  EROFS: "STORE_READ_ONLY",
  EACCES: "STORE_PERMISSION",
  EPERM: "STORE_PERMISSION",
};

/** Readable sentences for what people meet most; the rest is told in the system's words. */
const sentences: Readonly<Record<string, string>> = {
  ENOENT: "it is not there, or not mounted",
  ENOTDIR: "it is no directory",
  ESTALE: "the file server knows it no more; mount it again",
  EIO: "reading or writing the medium failed",
  ENXIO: "the device is gone",
  ENODEV: "the device is gone",
};

export function errnoOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}

/** The error as the store's, with its name. Errors that have a code of ours keep it. */
export function ioError(name: string, error: unknown): LeaseholdError {
  if (error instanceof LeaseholdError) {
    if (error.message.includes(name)) return error;
    return new LeaseholdError(error.code, `${name}: ${error.message}`, { cause: error });
  }
  const errno = errnoOf(error);
  const what = error instanceof Error ? error.message : String(error);
  const sentence = sentences[errno];
  return new LeaseholdError(
    codes[errno] ?? "STORE_UNAVAILABLE",
    sentence === undefined ? `${name}: ${what}` : `${name}: ${sentence} (${what})`,
    { cause: error },
  );
}
