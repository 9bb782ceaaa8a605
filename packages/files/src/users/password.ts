import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";

/** The hash of a password by scrypt (RFC 7914), in the format that other programs use. */
export interface PasswordHash {
  /** The cost N is 2 to this power. One check takes 128 * N * r bytes, and a time that grows with N. */
  readonly log2Cost: number;
  readonly blockSize: number;
  readonly parallel: number;
  readonly salt: Buffer;
  readonly hash: Buffer;
}

/** The cost of new hashes: 32 MB and about 100 ms. */
const log2CostDefault = 15;
const blockSizeDefault = 8;
const saltBytes = 16;
const hashBytes = 32;
/** The greatest cost of a check: 128 MB, and 16 times the time of a new hash. */
const log2CostMax = 17;
const blockSizeMax = 8;
const parallelMax = 4;

/** The longest password, bytes. */
export const passwordBytesMax = 1_024;

const form =
  /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{16,86})\$([A-Za-z0-9+/]{22,86})$/;

export function parseHash(text: string): PasswordHash | undefined {
  const match = form.exec(text);
  if (match === null) return undefined;
  const [log2Cost, blockSize, parallel] = match.slice(1, 4).map(Number) as [number, number, number];
  const isRight =
    log2Cost >= 1 &&
    log2Cost <= log2CostMax &&
    blockSize >= 1 &&
    blockSize <= blockSizeMax &&
    parallel >= 1 &&
    parallel <= parallelMax;
  if (!isRight) return undefined;
  const [salt, hash] = match.slice(4).map((each) => Buffer.from(each, "base64")) as [Buffer, Buffer];
  return { log2Cost, blockSize, parallel, salt, hash };
}

/** A new hash as text, for a line of the users' file. */
export async function hashOf(password: string, log2Cost = log2CostDefault): Promise<string> {
  const salt = randomBytes(saltBytes);
  const terms = { log2Cost, blockSize: blockSizeDefault, parallel: 1, salt, hash: Buffer.alloc(hashBytes) };
  const hash = await derive(password, terms);
  const text = (bytes: Buffer): string => bytes.toString("base64").replaceAll("=", "");
  return `$scrypt$ln=${log2Cost},r=${blockSizeDefault},p=1$${text(salt)}$${text(hash)}`;
}

export async function isPassword(password: string, hash: PasswordHash): Promise<boolean> {
  return timingSafeEqual(await derive(password, hash), hash.hash);
}

function derive(
  password: string,
  { log2Cost, blockSize, parallel, salt, hash }: PasswordHash,
): Promise<Buffer> {
  const N = 2 ** log2Cost;
  const options = { N, r: blockSize, p: parallel, maxmem: 256 * N * blockSize + 2 ** 20 };
  return new Promise((resolve, reject) => {
    scrypt(password, salt, hash.length, options, (error, key) =>
      error === null ? resolve(key) : reject(error),
    );
  });
}
