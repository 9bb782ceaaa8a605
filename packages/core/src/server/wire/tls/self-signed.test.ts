import { createPrivateKey, X509Certificate } from "node:crypto";
import { expect, test } from "vitest";
import { selfSigned } from "./self-signed.js";

const dayMs = 86_400_000;

test("OpenSSL accepts it for these hosts only, for servers and clients, with its key", () => {
  const fromMs = Date.UTC(2026, 10, 23);
  const { cert, key } = selfSigned(
    ["a.example", "10.0.0.1", "::1", "fe80::1:0:2"],
    fromMs,
    fromMs + 365 * dayMs,
  );
  const certificate = new X509Certificate(cert);
  expect(certificate.verify(certificate.publicKey)).toBe(true);
  expect(certificate.checkPrivateKey(createPrivateKey(key))).toBe(true);
  expect(certificate.subject).toBe("O=leasehold");
  expect(Date.parse(certificate.validFrom)).toBe(fromMs);
  expect(Date.parse(certificate.validTo)).toBe(fromMs + 365 * dayMs);
  expect(certificate.checkHost("a.example")).toBe("a.example");
  expect(certificate.checkHost("b.example")).toBeUndefined();
  expect(["10.0.0.1", "::1", "fe80::1:0:2"].map((ip) => certificate.checkIP(ip))).toEqual([
    "10.0.0.1",
    "::1",
    "fe80::1:0:2",
  ]);
  expect(certificate.checkIP("10.0.0.2")).toBeUndefined();
  expect(certificate.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
  expect(certificate.ca).toBe(false);
});

test("the same with many hosts, and beyond the year 2050", () => {
  const hosts = Array.from({ length: 300 }, (_, index) => `host-${index}.example`);
  const toMs = Date.UTC(2060, 0, 1);
  const certificate = new X509Certificate(selfSigned(hosts, Date.UTC(2049, 11, 31), toMs).cert);
  expect(Date.parse(certificate.validTo)).toBe(toMs);
  expect(certificate.checkHost("host-299.example")).toBe("host-299.example");
});
