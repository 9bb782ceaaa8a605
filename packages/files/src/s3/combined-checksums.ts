import { setImmediate as nextTurn } from "node:timers/promises";

/** Parts combined in one turn of the event loop: each takes about 30 µs. */
const partsPerTurn = 500;

/** A reflected CRC whose initial and final XOR values are all ones. */
interface Crc {
  readonly bits: number;
  /** Reflected, without the highest term. */
  readonly polynomial: bigint;
}

const crcs: ReadonlyMap<string, Crc> = new Map([
  ["crc32", { bits: 32, polynomial: 0xedb8_8320n }],
  ["crc32c", { bits: 32, polynomial: 0x82f6_3b78n }],
  ["crc64nvme", { bits: 64, polynomial: 0x9a6c_9329_ac4b_c9b5n }],
]);

/** A part's checksum in base64, and its length in bytes. */
export interface SummedPart {
  readonly sum: string;
  readonly bytes: number;
}

/** Whether a checksum of the whole can be computed from the checksums of its parts. */
export function isCombined(name: string): boolean {
  return crcs.has(name);
}

/**
 * The CRC of bytes, in base64, from the CRCs of their parts in order. The CRC of a part is shifted by the
 * length of the rest by multiplying it by a power of x modulo the polynomial (as in zlib's `crc32_combine`).
 */
export async function combined(name: string, parts: readonly SummedPart[]): Promise<string> {
  const crc = crcs.get(name)!;
  const powers = new Map<number, bigint>();
  let sum = 0n;
  for (const [at, { sum: text, bytes }] of parts.entries()) {
    // Lets leases be renewed between turns.
    if (at % partsPerTurn === partsPerTurn - 1) await nextTurn();
    const power = powers.get(bytes) ?? powerOfX(crc, bytes);
    powers.set(bytes, power);
    sum = multiply(crc, power, sum) ^ BigInt(`0x0${Buffer.from(text, "base64").toString("hex")}`);
  }
  return Buffer.from(sum.toString(16).padStart(crc.bits / 4, "0"), "hex").toString("base64");
}

/** Polynomials have their lowest term in the highest bit. */
function multiply({ bits, polynomial }: Crc, one: bigint, other: bigint): bigint {
  let product = 0n;
  let left = other;
  for (let bit = 1n << BigInt(bits - 1); bit > 0n; bit >>= 1n) {
    if ((one & bit) !== 0n) product ^= left;
    left = (left & 1n) === 0n ? left >> 1n : (left >> 1n) ^ polynomial;
  }
  return product;
}

/** The power of x whose exponent is the number of bits in that many bytes. */
function powerOfX(crc: Crc, bytes: number): bigint {
  const one = 1n << BigInt(crc.bits - 1);
  let power = one;
  let square = one >> 8n;
  for (let left = bytes; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) power = multiply(crc, power, square);
    square = multiply(crc, square, square);
  }
  return power;
}
