import { S3Error } from "./errors.js";

/** The longest path that we allow, without the bucket and its slash. */
export const pathBytesMax = 480;

const bucketForm = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** @throws S3Error `InvalidBucketName` */
export function checkBucket(bucket: string): string {
  if (bucketForm.test(bucket) && !bucket.includes("..")) return bucket;
  throw new S3Error(
    "InvalidBucketName",
    "a bucket's name has 3 to 63 small letters, digits, dots and hyphens",
  );
}

/** What a key refers to in the tree of files. */
export interface KeyPath {
  readonly path: string;
  /** The key ends with a slash. */
  readonly isFolder: boolean;
}

/** @throws S3Error `KeyTooLongError`, `InvalidArgument` for keys that aren't valid paths */
export function pathOfKey(bucket: string, key: string): KeyPath {
  const isFolder = key.endsWith("/");
  const path = `${checkBucket(bucket)}/${isFolder ? key.slice(0, -1) : key}`;
  if (Buffer.byteLength(path) > pathBytesMax)
    throw new S3Error("KeyTooLongError", `bucket and key together have at most ${pathBytesMax} bytes`);
  const isWrong = path.split("/").some((part) => part === "" || part === "." || part === "..");
  if (isWrong || /[\p{Cc}\p{Cs}]/u.test(path))
    throw new S3Error(
      "InvalidArgument",
      "a key has no empty parts between slashes, none that are . or .., and no control characters",
    );
  return { path, isFolder };
}

/** Encoded as for signing: everything except letters, digits and `-._~` becomes `%XX`. */
export function encodeStrictly(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** @throws S3Error `InvalidArgument` */
export function decodeStrictly(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new S3Error("InvalidArgument", "the address is not encoded as UTF-8 with %");
  }
}
