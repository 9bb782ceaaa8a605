import fc from "fast-check";
import { expect, test } from "vitest";
import { checksums } from "./checksums.js";
import { combined, isCombined } from "./combined-checksums.js";

const sumOf = (name: string, bytes: Uint8Array): string => {
  const sum = checksums.get(name)!();
  sum.add(bytes);
  return sum.end();
};

test.each([...checksums.keys()].filter(isCombined))("%s of the whole is told from its parts", (name) => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 70 }), { maxLength: 5 }), (parts) => {
      const whole = combined(
        name,
        parts.map((part) => ({ sum: sumOf(name, part), bytes: part.length })),
      );
      expect(whole).toBe(sumOf(name, Buffer.concat(parts)));
    }),
    { numRuns: 200 },
  );
});
