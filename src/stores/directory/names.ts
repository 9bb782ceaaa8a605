import { createHash } from "node:crypto";

/**
 * The longest name of a file that every usual file system takes is 255 bytes; this leaves room for what
 * others append.
 */
const nameBytesMax = 200;

/**
 * All but these is kept as it is. Capitals are not: some file systems do not tell them from small letters.
 */
const unusual = /[^a-z0-9_.~-]/gu;

const encoder = new TextEncoder();

/**
 * The directory of a register: `r-` and its name with everything unusual as `%xx`, readable for people and
 * nothing special to any file system; or, for long ones, `h-` and a hash.
 */
export function directoryOfRegister(register: string): {
  readonly directory: string;
  readonly isHashed: boolean;
} {
  const encoded = register.replace(unusual, encodeCharacter);
  if (encoded.length <= nameBytesMax) return { directory: `r-${encoded}`, isHashed: false };
  return { directory: `h-${createHash("sha256").update(register).digest("hex")}`, isHashed: true };
}

/**
 * The register's name if it is readable from the directory's; `undefined` for one that is hashed, and for
 * what is no register.
 */
export function registerOfDirectory(directory: string): string | undefined {
  if (!directory.startsWith("r-")) return undefined;
  try {
    const register = decodeURIComponent(directory.slice(2));
    return directoryOfRegister(register).directory === directory ? register : undefined;
  } catch {
    return undefined;
  }
}

function encodeCharacter(character: string): string {
  let encoded = "";
  for (const byte of encoder.encode(character)) encoded += `%${byte.toString(16).padStart(2, "0")}`;
  return encoded;
}

/**
 * What a token directory, and the content in it, are called: the number of the write and a nonce that no
 * other write has.
 */
export interface Version {
  readonly number: number;
  readonly name: string;
}

export function makeVersion(number: number): Version {
  return { number, name: `${number}-${globalThis.crypto.randomUUID()}` };
}

export function parseVersion(name: string): Version | undefined {
  const number = /^(\d{1,15})-[0-9a-f-]{36}$/.exec(name)?.[1];
  return number === undefined ? undefined : { number: Number(number), name };
}
