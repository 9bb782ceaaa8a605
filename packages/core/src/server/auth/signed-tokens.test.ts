import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SignJWT } from "jose";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SignedTokens } from "./signed-tokens.js";

const secret = "a secret of thirty-two characters";
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-signed-"));
  writeFileSync(join(folder, "key"), secret);
});
afterEach(() => rmSync(folder, { recursive: true }));

async function tokensOf(cluster: string): Promise<SignedTokens> {
  const tokens = await SignedTokens.open({
    kind: "jwt",
    method: "HS256",
    privateKeyFile: join(folder, "key"),
    ttlMs: 60_000,
  } as Parameters<typeof SignedTokens.open>[0]);
  tokens.bindTo(cluster);
  return tokens;
}

test("a token is valid in its own core, and not in one restored from its backup with the same key", async () => {
  const [before, restored] = [await tokensOf("a1"), await tokensOf("b2")];
  const token = await before.sign("ann", 12n);
  const ann = { kind: "user", user: "ann", revision: 12n };
  expect(await before.read(token)).toEqual(ann);
  await expect(restored.read(token)).rejects.toMatchObject({ failure: "invalidAuthToken" });
  // Tokens from other issuers, such as etcd, name no core.
  const other = await new SignJWT({ username: "ann", revision: 12 })
    .setProtectedHeader({ alg: "HS256" })
    .setExpirationTime("1m")
    .sign(Buffer.from(secret));
  expect(await restored.read(other)).toEqual(ann);
});
