import { execFile } from "node:child_process";
import { connect } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Authority } from "../support/pki.js";
import { CoreCluster } from "./support/core-cluster.js";

/** Three servers with certificates on both sides, towards clients and among themselves. */
const authority = new Authority();
const stranger = new Authority("/CN=somebody else");
const ours = authority.issue(["subjectAltName = IP:127.0.0.1", "extendedKeyUsage = serverAuth, clientAuth"]);
let cluster: CoreCluster;

beforeAll(async () => {
  const flags = ["", "peer-"].flatMap((kind) => [
    `--${kind}cert-file`,
    String(ours.cert),
    `--${kind}key-file`,
    String(ours.key),
    `--${kind}trusted-ca-file`,
    authority.caFile,
    `--${kind}client-cert-auth`,
  ]);
  cluster = await CoreCluster.create(3, { flags, scheme: "https" });
  for (const server of cluster.servers) server.start();
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  authority.remove();
  stranger.remove();
});

function etcdctl(
  words: readonly string[],
  tls: { cert: unknown; key: unknown } | undefined,
): Promise<string> {
  const endpoints = cluster.servers.map(({ endpoint }) => `https://${endpoint}`).join(",");
  const own = tls === undefined ? [] : ["--cert", String(tls.cert), "--key", String(tls.key)];
  const all = ["--endpoints", endpoints, "--cacert", authority.caFile, "--dial-timeout=2s", ...own, ...words];
  return new Promise((resolve, reject) => {
    execFile("etcdctl", all, { env: { ...process.env, ETCDCTL_API: "3" } }, (error, stdout, stderr) =>
      error === null ? resolve(stdout) : reject(new Error(stderr)),
    );
  });
}

test("clients with a certificate are served, by every server, and others are not", async () => {
  await expect.poll(() => etcdctl(["put", "a", "1"], ours).catch(() => ""), { timeout: 30_000 }).toBe("OK\n");
  expect(await etcdctl(["endpoint", "health", "--cluster"], ours).then(() => "healthy")).toBe("healthy");
  await expect(etcdctl(["get", "a"], undefined)).rejects.toThrow("context deadline exceeded");
  await expect(etcdctl(["get", "a"], stranger.issue(["extendedKeyUsage = clientAuth"]))).rejects.toThrow(
    "context deadline exceeded",
  );
});

test("a server without a certificate of the authority is refused, and the message says so", async () => {
  const [first] = cluster.servers;
  const socket = connect({ host: "127.0.0.1", port: first!.peerPort, rejectUnauthorized: false });
  socket.on("secureConnect", () => socket.write("hello"));
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("close", resolve));
  await expect.poll(() => first!.output).toMatch(/127.0.0.1 was refused: .*certificate/);
});
