import { describe, expect, test } from "vitest";
import { parseCoreUrls } from "./address.js";
import { Keys } from "./keys.js";
import { decodeRecord, encodeRecord } from "./record.js";

const code = (name: string) => expect.objectContaining({ code: name });

describe("the address of a core", () => {
  test("names its servers; by default with etcd's port and our prefix", () => {
    expect(parseCoreUrls(["core://a:1,b,[::1]:3"])).toEqual({
      endpoints: ["a:1", "b:2379", "[::1]:3"],
      keyPrefix: "leasehold/",
      ttlMaxMs: 15_000,
      clockRateError: 0.1,
    });
  });

  test("may come in several parts, which must not contradict each other", () => {
    const { endpoints, keyPrefix, ttlMaxMs } = parseCoreUrls([
      "core://a:1/my%20app?ttlMax=30s",
      "core://b:2,a:1",
    ]);
    expect([endpoints, keyPrefix, ttlMaxMs]).toEqual([["a:1", "b:2"], "my app/", 30_000]);
    expect(() => parseCoreUrls(["core://a?ttlMax=3s", "core://b?ttlMax=4s"])).toThrow(code("INVALID_URL"));
  });

  test.each([
    ["core://", "INVALID_URL"],
    ["core:a", "INVALID_URL"],
    ["flease://a:1", "INVALID_URL"],
    ["core://user:secret@a", "INVALID_URL"],
    ["core://a:0", "INVALID_URL"],
    ["core://a:70000", "INVALID_URL"],
    ["core://a b", "INVALID_URL"],
    ["core://a,,b", "INVALID_URL"],
    ["core://a/%zz", "INVALID_URL"],
    ["core://a/%00", "INVALID_URL"],
    [`core://a/${"x".repeat(300)}`, "INVALID_URL"],
    ["core://a?ttlmax=3s", "INVALID_URL"],
    ["core://a?ttlMax=3s&ttlMax=3s", "INVALID_URL"],
    ["core://a?ttlMax=3", "INVALID_DURATION"],
    ["core://a?ttlMax=999ms", "INVALID_CONFIG"],
    ["core://a?ttlMax=25h", "INVALID_CONFIG"],
    ["core://a?clockRateError=0.5", "INVALID_CONFIG"],
    ["core://a?clockRateError=", "INVALID_CONFIG"],
    [`core://${Array.from({ length: 32 }, (_, index) => `h${index}`).join(",")}`, "INVALID_URL"],
  ])("%s is refused: %s", (url, expected) => {
    expect(() => parseCoreUrls([url])).toThrow(code(expected));
  });

  test("the error does not repeat a password in the address", () => {
    expect(() => parseCoreUrls(["core://user:secret@a"])).not.toThrow(/secret/);
  });
});

describe("keys and records in the core", () => {
  test("a resource has a key below the prefix, from which its name can be read", () => {
    const keys = new Keys("app/");
    expect(keys.of("a/b")).toBe("app/leases/a/b");
    expect(keys.resourceOf(keys.of("ü/🔒"))).toBe("ü/🔒");
  });

  test("a record is decoded as it was encoded, with or without a request", () => {
    const record = { holder: "a.1", label: "host", nonce: "7", seconds: 15, spreadMs: 0 };
    expect(decodeRecord(encodeRecord(record))).toEqual(record);
    const asked = { ...record, asked: { by: "b.2", broken: true } };
    expect(decodeRecord(encodeRecord(asked))).toEqual(asked);
  });

  test.each([
    "",
    "text",
    "7",
    "null",
    "[]",
    "{}",
    '{"holder":1}',
    '{"holder":"a","label":"","nonce":"1","seconds":-1,"spreadMs":0}',
  ])("%j is not a record of Leasehold", (text) => expect(decodeRecord(text)).toBeUndefined());
});
