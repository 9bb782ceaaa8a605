import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, expect, it } from "vitest";
import { Authority } from "../../../../../test/support/pki.js";
import { proofOfCertificate, urisOf } from "./certificate.js";

const authority = new Authority();
afterAll(() => authority.remove());

const proofOf = (...extensions: string[]) =>
  proofOfCertificate(new X509Certificate(readFileSync(authority.issue(extensions).cert)));

it("reads members, clients and observers, also with names that need encoding", () => {
  const san = (uri: string) => proofOf(`subjectAltName = URI:${uri}`);
  expect(san("leasehold://prod/member/db-1")).toMatchObject({
    roles: ["member", "client", "observer"],
    cluster: "prod",
    memberId: "db-1",
  });
  expect(san("leasehold://our%20cl%C3%BCster/client")).toMatchObject({
    roles: ["client", "observer"],
    cluster: "our clüster",
  });
  expect(san("leasehold://prod/observer")).toMatchObject({ roles: ["observer"], cluster: "prod" });
});

it.each([
  "URI:leasehold://prod/boss",
  "URI:leasehold://prod/member",
  "URI:leasehold://prod/member/a/b",
  "URI:leasehold://prod/client/x",
  "URI:leasehold:///client",
  "URI:leasehold://prod/client?role=member",
  "URI:leasehold://%ff/client",
  "URI:leasehold://prod/client, URI:leasehold://prod/member/a",
  "URI:https://prod/member/a",
  "DNS:leasehold",
])("finds no proof in %s", (san) => {
  expect(proofOf(`subjectAltName = ${san}`)).toMatchObject({ cause: "certificate" });
});

it("a single name with a comma and `URI:` in it is not read as two names", () => {
  expect(urisOf(String.raw`DNS:"a, URI:leasehold://prod/member/a", URI:leasehold://prod/client`)).toEqual([
    "leasehold://prod/client",
  ]);
  expect(urisOf(String.raw`URI:"x\", URI:leasehold://prod/member/a"`)).toEqual([]);
  expect(urisOf(undefined)).toEqual([]);
  const proof = proofOf("subjectAltName = @others\n[others]\nDNS.1 = a\\, URI:leasehold://prod/member/a");
  expect(proof).toMatchObject({ cause: "certificate" });
});
