import { type ErrorCode, LeaseholdError } from "../../lease/errors.js";

/** The codes of the operating system's errors. Any other error means that the store is unavailable. */
const codes: Readonly<Record<string, ErrorCode>> = {
  ENOSPC: "STORE_FULL",
  EDQUOT: "STORE_FULL",
  EFBIG: "STORE_FULL",
  EMLINK: "STORE_FULL",
  EROFS: "STORE_READ_ONLY",
  EACCES: "STORE_PERMISSION",
  EPERM: "STORE_PERMISSION",
};

/** Readable sentences for the most common errors; any other has the system's own message. */
const sentences: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist, or is not mounted",
  ENOTDIR: "it is not a directory",
  ESTALE: "the file server no longer knows it; mount it again",
  EIO: "reading or writing the medium failed",
  ENXIO: "the device is gone",
  ENODEV: "the device is gone",
};

export function errnoOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}

/** The error of a store, with its name. An error that has a `LeaseholdError` code keeps it. */
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
