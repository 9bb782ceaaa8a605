import fc from "fast-check";
import { expect, test } from "vitest";
import { checksums } from "./checksums.js";
import { combined, isCombined } from "./combined-checksums.js";

const sumOf = (name: string, bytes: Uint8Array): string => {
  const sum = checksums.get(name)!();
  sum.add(bytes);
  return sum.end();
};

test.each([...checksums.keys()].filter(isCombined))(
  "%s of the whole is told from its parts",
  async (name) => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 70 }), { maxLength: 5 }), async (parts) => {
        const whole = await combined(
          name,
          parts.map((part) => ({ sum: sumOf(name, part), bytes: part.length })),
        );
        expect(whole).toBe(sumOf(name, Buffer.concat(parts)));
      }),
      { numRuns: 200 },
    );
  },
);

test("600 parts, which take more than a turn, tell the CRC of the whole", async () => {
  const bytes = Buffer.alloc(600, "0123456789");
  const parts = [...bytes].map((byte) => ({ sum: sumOf("crc32c", Uint8Array.of(byte)), bytes: 1 }));
  expect(await combined("crc32c", parts)).toBe(sumOf("crc32c", bytes));
});
