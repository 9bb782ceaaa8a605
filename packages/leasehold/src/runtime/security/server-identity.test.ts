import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { PeerCertificate } from "node:tls";
import { afterAll, expect, test } from "vitest";
import { Authority } from "../../../../../test/support/pki.js";
import { identityProblem } from "./server-identity.js";

const authority = new Authority();
afterAll(() => authority.remove());

test("a host is found in a certificate by its name or address, IPv6 in any spelling, and no other host is", () => {
  const { cert } = authority.issue(["subjectAltName = DNS:a.example.com, IP:127.0.0.1, IP:fd00::1"]);
  const shown = new X509Certificate(readFileSync(String(cert))).toLegacyObject() as PeerCertificate;
  for (const host of ["a.example.com", "127.0.0.1", "fd00::1", "FD00:0:0::0:1", "fd00::1%eth0"])
    expect(identityProblem(host, shown)).toBeUndefined();
  for (const host of ["b.example.com", "127.0.0.2", "fd00::2", "::1", "fd00::2%eth0"])
    expect(identityProblem(host, shown)).toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
});
