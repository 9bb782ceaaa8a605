import { expect, test } from "vitest";
import { parseCiphers } from "./cipher-suites.js";

test("Go's names map to OpenSSL's, and bound the TLS versions", () => {
  expect(parseCiphers()).toBeUndefined();
  expect(parseCiphers("")).toBeUndefined();
  const rsa = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
  expect(parseCiphers(`${rsa},TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305`)).toEqual({
    ciphers: "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305",
    honorCipherOrder: true,
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.2",
  });
  expect(parseCiphers(`${rsa}, TLS_AES_128_GCM_SHA256`)).toMatchObject({
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.3",
  });
  expect(parseCiphers("TLS_AES_128_GCM_SHA256")).toMatchObject({ minVersion: "TLSv1.3" });
  expect(() => parseCiphers(`${rsa},nope`)).toThrow('unexpected TLS cipher suite "nope"');
  expect(() => parseCiphers("toString")).toThrow("unexpected TLS cipher suite");
  expect(() => parseCiphers("TLS_RSA_WITH_RC4_128_SHA")).toThrow("this Node does not have");
});
