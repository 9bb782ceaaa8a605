import { expect, test } from "vitest";
import { secured } from "./security.js";

const key = "00112233445566778899aabbccddeeff".repeat(2);

test.each([
  ["a key that is too short", { key: "00112233" }, /64 to 128 hexadecimal digits/],
  ["a key that is a pattern", { key: "ab".repeat(32) }, /not random/],
  ["two ways at once", { key, keyFile: "k" }, /only one/],
])("nodes of files refuse %s", async (_what, security, why) => {
  await expect(secured(security, [])).rejects.toThrow(why);
  await expect(secured(security, [])).rejects.toMatchObject({ code: "INVALID_CONFIG" });
});

test("nodes of files that others can reach need a key or certificates", async () => {
  const far = { host: "10.0.0.1", port: 7485 };
  await expect(secured({}, [far])).rejects.toThrow(/can be reached from other machines/);
  await expect(secured({ key }, [far])).resolves.toBeDefined();
  await expect(secured({}, [{ host: "127.0.0.1", port: 7485 }])).resolves.toBeDefined();
});
