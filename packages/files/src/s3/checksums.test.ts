import { expect, test } from "vitest";
import { checksums } from "./checksums.js";

/** Checksums of "123456789", from the catalogue of parametrised CRC algorithms and from FIPS 180-4. */
const known: Readonly<Record<string, string>> = {
  crc32: "cbf43926",
  crc32c: "e3069283",
  crc64nvme: "ae8b14860a799888",
  sha1: "f7c3bc1d808e04732adf679965ccc34ca7ae3441",
  sha256: "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
};

test.each([...checksums])("%s has its known value, in one piece and in many", (name, make) => {
  const bytes = Buffer.from("123456789");
  const expected = Buffer.from(known[name]!, "hex").toString("base64");
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const sum = make();
    sum.add(bytes.subarray(0, cut));
    sum.add(bytes.subarray(cut));
    expect(sum.end()).toBe(expected);
  }
});
