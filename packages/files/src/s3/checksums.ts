import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";

/** A checksum of everything added to it so far. */
export interface Summing {
  add(bytes: Uint8Array): void;
  /** In base64. */
  end(): string;
}

/** The table of a reflected 64-bit CRC, in halves. A 32-bit CRC uses only the low half. */
interface CrcTable {
  readonly low: Uint32Array;
  readonly high: Uint32Array;
}

function tableOf(polynomialLow: number, polynomialHigh: number): CrcTable {
  const table = { low: new Uint32Array(256), high: new Uint32Array(256) };
  for (let index = 0; index < 256; index += 1) {
    let [low, high] = [index, 0];
    for (let bit = 0; bit < 8; bit += 1) {
      const isOdd = (low & 1) === 1;
      low = ((low >>> 1) | (high << 31)) >>> 0;
      high >>>= 1;
      if (isOdd) {
        low = (low ^ polynomialLow) >>> 0;
        high = (high ^ polynomialHigh) >>> 0;
      }
    }
    table.low[index] = low;
    table.high[index] = high;
  }
  return table;
}

/** CRC-32C (Castagnoli) and CRC-64/NVME, both reflected. */
const crc32cTable = tableOf(0x82f63b78, 0);
const crc64Table = tableOf(0xac4bc9b5, 0x9a6c9329);

function crcOf({ low: lows, high: highs }: CrcTable, hasHigh: boolean): Summing {
  let [low, high] = [0xffff_ffff, hasHigh ? 0xffff_ffff : 0];
  return {
    add: (bytes) => {
      let [l, h] = [low, high];
      for (let at = 0; at < bytes.length; at += 1) {
        const index = (l ^ bytes[at]!) & 0xff;
        l = ((l >>> 8) | (h << 24)) ^ lows[index]!;
        h = (h >>> 8) ^ highs[index]!;
      }
      [low, high] = [l, h];
    },
    end: () => {
      const bytes = Buffer.alloc(8);
      bytes.writeUInt32BE(~high >>> 0, 0);
      bytes.writeUInt32BE(~low >>> 0, 4);
      return bytes.subarray(hasHigh ? 0 : 4).toString("base64");
    },
  };
}

function crc32Sum(): Summing {
  let sum = 0;
  return {
    add: (bytes) => void (sum = crc32(bytes, sum)),
    end: () => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(sum);
      return bytes.toString("base64");
    },
  };
}

function hashSum(name: string): Summing {
  const hash = createHash(name);
  return { add: (bytes) => void hash.update(bytes), end: () => hash.digest("base64") };
}

/** The checksums that a client may send, keyed by the last word of their headers `x-amz-checksum-…`. */
export const checksums: ReadonlyMap<string, () => Summing> = new Map([
  ["crc32", crc32Sum],
  ["crc32c", () => crcOf(crc32cTable, false)],
  ["crc64nvme", () => crcOf(crc64Table, true)],
  ["sha1", () => hashSum("sha1")],
  ["sha256", () => hashSum("sha256")],
]);

export const checksumHeader = "x-amz-checksum-";
