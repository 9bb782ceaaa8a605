import { createHash } from "node:crypto";

/** File names may have 255 bytes on every usual file system; this leaves room for suffixes. */
const nameBytesMax = 200;

/** Characters that are encoded. Capitals are included, because some file systems ignore case. */
const unusual = /[^a-z0-9_.~-]/gu;

const encoder = new TextEncoder();

/**
 * The directory of a register: `r-` and its name with every other character as `%xx`, readable for people and
 * without special characters; or, for long ones, `h-` and a hash.
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
 * The register's name if the directory's name contains it; `undefined` for a hash and for other directories.
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

/** The longest name that every usual file system of Linux takes, bytes. */
export const longestNameBytes = 255;

/**
 * The name of a token directory: `<number>=<content>` or, if the content is too long for a name,
 * `<number>-<nonce>`, and the content is in a file with the same name in the token. The number counts the
 * writes, so no name occurs twice.
 */
export interface Version {
  readonly number: number;
  readonly name: string;
  /** Absent if the content is in a file. */
  readonly content?: Uint8Array;
}

/** A version whose content is in a file. */
export function makeVersion(number: number): Version {
  return { number, name: `${number}-${globalThis.crypto.randomUUID()}` };
}

/** A version whose name contains its content; `undefined` if that is too long. */
export function makeNamedVersion(number: number, content: Uint8Array): Version | undefined {
  if (content.length > longestNameBytes) return undefined;
  const name = `${number}=${escaped(content)}`;
  return name.length > longestNameBytes ? undefined : { number, name, content };
}

export function parseVersion(name: string): Version | undefined {
  const [, digits, nonce, text] = /^(\d{1,15})(?:-([0-9a-f-]{36})|=([ -~]*))$/.exec(name) ?? [];
  if (digits === undefined) return undefined;
  const number = Number(digits);
  return nonce === undefined ? { number, name, content: unescaped(text!) } : { number, name };
}

/** Printable ASCII is kept, except for `/` and `%`; every other byte is `%xx`. */
function escaped(content: Uint8Array): string {
  const text = Buffer.from(content.buffer, content.byteOffset, content.length).toString("latin1");
  return text.replace(
    /[^ -$&-.0-~]/g,
    (character) => `%${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

function unescaped(text: string): Uint8Array {
  const latin1 = text.replace(/%([0-9a-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return new Uint8Array(Buffer.from(latin1, "latin1"));
}
