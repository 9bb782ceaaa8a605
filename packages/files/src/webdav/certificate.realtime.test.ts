import { X509Certificate } from "node:crypto";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, expect, test } from "vitest";
import { MemoryFiles } from "../../../../test/support/memory-files.js";
import { Authority } from "../../../../test/support/pki.js";
import { MemoryCluster } from "leasehold/inner/testing/index.js";
import { silent, watchCertificate } from "leasehold/runtime";
import { serveWebdav } from "./server.js";

const authority = new Authority();
afterAll(() => authority.remove());

const [old, next] = [authority.for("member/a"), authority.for("member/a")];
const fingerprintOf = (path: string) => new X509Certificate(readFileSync(path)).fingerprint256;

async function shownAt(url: string): Promise<string> {
  const { hostname: host, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: Number(port),
      ca: readFileSync(authority.caFile),
      checkServerIdentity: () => undefined,
    });
    socket.on("error", reject);
    socket.on("secureConnect", () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
  });
}

test("a certificate that changes on disk is used for later clients, and a broken one is not", async () => {
  const copy = { cert: join(authority.folder, "shown.pem"), key: join(authority.folder, "shown.key") };
  const put = (from: typeof copy): void => {
    copyFileSync(from.cert, copy.cert);
    copyFileSync(from.key, copy.key);
  };
  put(old);
  const faults: string[] = [];
  const leases = new MemoryCluster().open("a");
  const server = await serveWebdav(new MemoryFiles(), leases, {
    tls: copy,
    fault: (text) => faults.push(text),
  });
  const shown = async () => shownAt(server.url);
  try {
    expect(await shown()).toBe(fingerprintOf(old.cert));
    put(next);
    await expect.poll(shown, { timeout: 20_000, interval: 250 }).toBe(fingerprintOf(next.cert));
    writeFileSync(copy.key, "-----BEGIN PRIVATE KEY-----\nMII");
    await expect.poll(() => faults.length, { timeout: 20_000 }).toBe(1);
    expect(faults[0]).toMatch(/shown\.pem is no certificate with its key: .*stays in use/);
    expect(await shown()).toBe(fingerprintOf(next.cert));
  } finally {
    await server.close();
  }
});

test("a certificate and the key of another are refused", async () => {
  const watching = watchCertificate({ cert: old.cert, key: next.key }, silent);
  await expect(watching).rejects.toMatchObject({ code: "INVALID_CONFIG" });
});

test("over TLS a request of the server's own page is served, and one of another site's is not", async () => {
  const server = await serveWebdav(new MemoryFiles(), new MemoryCluster().open("a"), { tls: old });
  const statusFor = (origin: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const ca = readFileSync(authority.caFile);
      const options = { ca, checkServerIdentity: () => undefined, headers: { origin }, agent: false };
      get(`${server.url}/`, options, (response) => {
        response.resume();
        resolve(response.statusCode);
      }).on("error", reject);
    });
  try {
    expect(await statusFor(server.url)).toBe(200);
    expect(await statusFor(server.url.replace("https", "http"))).toBe(403);
    expect(await statusFor("https://evil.example")).toBe(403);
  } finally {
    await server.close();
  }
});
