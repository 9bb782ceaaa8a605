import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { open } from "leasehold";
import { freePorts } from "../free-ports.js";
import { mainPath } from "../support/built.js";
import { Authority, asText } from "../support/pki.js";

const code = (name: string) => expect.objectContaining({ code: name });

for (const program of ["etcd", "leasehold"] as const) {
  describe(`core:// with certificates on ${program}`, () => {
    const authority = new Authority();
    const folder = mkdtempSync(join(tmpdir(), "lh-core-tls-"));
    const ours = authority.issue(["extendedKeyUsage = clientAuth"]);
    let server: ChildProcess;
    let address: string;

    beforeAll(async () => {
      const own = authority.issue([
        "subjectAltName = IP:127.0.0.1",
        "extendedKeyUsage = serverAuth, clientAuth",
      ]);
      const [port, peer] = await freePorts(2);
      const [url, peerUrl] = [`https://127.0.0.1:${port}`, `http://127.0.0.1:${peer}`];
      const words = program === "etcd" ? ["etcd"] : [process.execPath, mainPath, "core"];
      words.push("--name", "s1", "--data-dir", join(folder, "data"), "--initial-cluster", `s1=${peerUrl}`);
      words.push("--listen-client-urls", url, "--advertise-client-urls", url);
      words.push("--listen-peer-urls", peerUrl, "--initial-advertise-peer-urls", peerUrl);
      words.push(
        "--cert-file",
        own.cert,
        "--key-file",
        own.key,
        "--trusted-ca-file",
        own.ca,
        "--client-cert-auth",
      );
      server = spawn(words[0]!, words.slice(1), { stdio: "ignore" });
      address = `core://127.0.0.1:${port}`;
    });
    afterAll(async () => {
      const exited = once(server, "exit");
      server.kill("SIGKILL");
      await exited;
      authority.remove();
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    });

    test("a lease is taken with certificates as files and as text", async () => {
      for (const tls of [ours, asText(ours)]) {
        const leases = await open(address, { tls, timeout: "20s" });
        const lease = await leases.acquire("jobs/secret");
        expect(lease.remaining()).toBeGreaterThan(0);
        await lease.release();
        await leases.close();
      }
    });

    test("a server of another authority is not believed", async () => {
      const other = new Authority();
      const tls = { ...ours, ca: other.caFile };
      const opening = open(address, { tls, timeout: "1s" });
      await expect(opening).rejects.toThrow(code("UNAUTHENTICATED"));
      other.remove();
    });

    test("without certificates nothing is opened, and no key is in the error", async () => {
      await expect(open(address, { timeout: "1s" })).rejects.toThrow(/could be reached|no answer/);
      const garbled = open(address, { tls: { ...asText(ours), key: "-----BEGIN PRIVATE KEY-----\nMIG" } });
      await expect(garbled).rejects.toThrow(code("INVALID_CONFIG"));
      const tls = { ...asText(ours), ca: "/nowhere/ca.pem" };
      const error = (await open(address, { tls }).catch((cause: unknown) => cause)) as Error;
      expect(error).toEqual(code("INVALID_CONFIG"));
      expect(error.message).not.toContain("PRIVATE KEY");
    });
  });
}
