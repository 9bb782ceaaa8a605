import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type JWK, SignJWT, exportJWK, exportSPKI, generateKeyPair } from "jose";
import { open } from "leasehold";
import { silent } from "leasehold/runtime";
import { afterEach, expect, it } from "vitest";
import { startGateway } from "../index.js";
import { parseUsers } from "../rights/users.js";
import { openIssuer } from "./token-issuer.js";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const names = { issuer: "https://id.example", audience: "leasehold" };

/** Creates an issuer with one key of each kind. */
async function issuerOf(algorithm = "ES256", kid = "first") {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const jwk: JWK = { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: "sig" };
  const token = (
    more: { iss?: string; aud?: string; sub?: string | undefined; exp?: string | number } = {},
  ) => {
    const { iss = names.issuer, aud = names.audience, exp = "1m" } = more;
    const claims = new SignJWT({ ...("sub" in more ? more.sub && { sub: more.sub } : { sub: "ci" }) });
    const signed = claims.setProtectedHeader({ alg: algorithm, kid }).setIssuer(iss).setAudience(aud);
    return (exp === 0 ? signed : signed.setExpirationTime(exp)).sign(privateKey);
  };
  return { jwk, token, pem: await exportSPKI(publicKey) };
}

function fileOf(text: string, name = "jwks.json"): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-jwks-"));
  ends.push(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

it("a token is accepted if the issuer signed it for this gateway, and no other token is", async () => {
  const [ours, others] = [await issuerOf(), await issuerOf()];
  const trusted = await openIssuer({ ...names, keys: fileOf(JSON.stringify({ keys: [ours.jwk] })) }, silent);
  ends.push(() => trusted.close());
  expect(await trusted.subjectOf(await ours.token())).toBe("ci");
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = {
    iss: names.issuer,
    aud: names.audience,
    sub: "ci",
    exp: Math.floor(Date.now() / 1_000) + 60,
  };
  const withPublicKey = new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: "first" });
  const [head, body, signature] = (await ours.token()).split(".");
  const wrong: Record<string, string> = {
    "of another key": await others.token(),
    "of another issuer": await ours.token({ iss: "https://evil.example" }),
    "for another audience": await ours.token({ aud: "billing" }),
    expired: await ours.token({ exp: "-1m" }),
    "without an end": await ours.token({ exp: 0 }),
    "without a subject": await ours.token({ sub: undefined }),
    "without a signature": `${encoded({ alg: "none" })}.${encoded(claims)}.AA`,
    "signed with the public key as a secret": await withPublicKey.sign(new TextEncoder().encode(ours.pem)),
    "whose claims were changed": `${head}.${encoded({ ...claims, sub: "ops" })}.${signature}`,
    "that is cut": `${head}.${body}.${signature!.slice(0, -4)}`,
    garbage: "a.b.c",
  };
  for (const [name, token] of Object.entries(wrong))
    await expect([name, await trusted.subjectOf(token).catch((error) => error.code)]).toEqual([
      name,
      "UNAUTHENTICATED",
    ]);
});

it("keys are fetched from their address: new ones are accepted, and while it is down every token is refused", async () => {
  const [first, second] = [await issuerOf(), await issuerOf("RS256", "second")];
  let [keys, asked]: [JWK[] | undefined, number] = [undefined, 0];
  const server = createServer((_, response) => {
    asked += 1;
    response.statusCode = keys === undefined ? 500 : 200;
    response.end(JSON.stringify({ keys }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  ends.push(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`;
  const trusted = await openIssuer({ ...names, keys: url }, silent);
  await expect(trusted.subjectOf(await first.token())).rejects.toMatchObject({ code: "UNREACHABLE" });
  keys = [first.jwk, second.jwk];
  expect(await trusted.subjectOf(await first.token())).toBe("ci");
  expect(await trusted.subjectOf(await second.token())).toBe("ci");
  // Tokens with unknown keys cause no further fetches.
  const before = asked;
  const stranger = await issuerOf("ES256", "third");
  const refused = await Promise.allSettled(
    Array.from({ length: 50 }, async () => trusted.subjectOf(await stranger.token())),
  );
  expect(refused.every(({ status }) => status === "rejected")).toBe(true);
  expect(asked - before).toBeLessThanOrEqual(1);
});

it("keys of a file are read again: new ones are accepted, and removed ones are not", async () => {
  const [first, second] = [await issuerOf(), await issuerOf("ES256", "second")];
  const keys = fileOf(JSON.stringify({ keys: [first.jwk] }));
  const trusted = await openIssuer({ ...names, keys }, silent);
  ends.push(() => trusted.close());
  const subject = async (of: typeof first) => trusted.subjectOf(await of.token()).catch(() => "refused");
  expect([await subject(first), await subject(second)]).toEqual(["ci", "refused"]);
  writeFileSync(keys, JSON.stringify({ keys: [second.jwk], changed: true }));
  await expect.poll(() => subject(second), { timeout: 30_000 }).toBe("ci");
  expect(await subject(first)).toBe("refused");
});

it.each(["http://id.example/jwks", "/nowhere/jwks.json"])("keys at %s are refused", async (keys) => {
  await expect(openIssuer({ ...names, keys }, silent)).rejects.toMatchObject({ code: "INVALID_CONFIG" });
});

it("a subject has the rights of its `jwt` line, and not those of a line of another kind", async () => {
  const { jwk, token } = await issuerOf();
  const usersFile = fileOf(
    `ci jwt hold:ci/\nops certificate administer:\n${"x".repeat(255)} jwt hold:ci/\n`,
    "users",
  );
  const leases = await open("memory:gateway-jwt");
  ends.push(() => leases.close());
  const jwt = { ...names, keys: fileOf(JSON.stringify({ keys: [jwk] })) };
  await expect(startGateway(leases, { address: "127.0.0.1:0", jwt })).rejects.toThrow("--users-file");
  const gateway = await startGateway(leases, { address: "127.0.0.1:0", usersFile, jwt });
  ends.push(() => gateway.close());
  const status = async (resource: string, bearer: string): Promise<number> => {
    const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
    const body = JSON.stringify({ resource, wait: 0 });
    return (await fetch(`${gateway.url}/v1/leases`, { method: "POST", headers, body })).status;
  };
  expect([await status("ci/a", await token()), await status("prod/a", await token())]).toEqual([200, 403]);
  expect(await status("ci/b", await token({ sub: "ops" }))).toBe(401);
  expect(await status("ci/b", await token({ exp: "-1m" }))).toBe(401);
  // A subject and a token at their limits, and one above.
  expect([await status("ci/c", await token({ sub: "x".repeat(255) }))]).toEqual([200]);
  const cut = (await token()).slice(0, -1);
  expect([await status("ci/d", cut + "A".repeat(8_193 - cut.length))]).toEqual([401]);
  expect(() => parseUsers(`${"x".repeat(256)} jwt hold:`)).toThrow("1 to 255 letters");
});
