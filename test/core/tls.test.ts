import { execFile, execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { basename, join } from "node:path";
import { connect } from "node:tls";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  LockRequestSchema,
  LockResponseSchema,
} from "../../packages/leasehold/src/etcd/gen/etcd/v3lock_pb.js";
import { isOpenToClients } from "../../packages/core/src/server/wire/tls/tls.js";
import { Authority } from "../support/pki.js";
import { CoreCluster } from "./support/core-cluster.js";

/** Three servers with certificates on both sides, towards clients and among themselves. */
const authority = new Authority();
const stranger = new Authority("/CN=somebody else");
const ours = authority.issue(["subjectAltName = IP:127.0.0.1", "extendedKeyUsage = serverAuth, clientAuth"]);
let cluster: CoreCluster;

type TlsFiles = typeof ours;

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

test("who could speak HTTP/1.1, as curl and Prometheus, gets JSON, health and metrics", async () => {
  const [host, port] = cluster.servers[0]!.endpoint.split(":");
  const { ca, cert, key } = contents(ours);
  const ALPNProtocols = ["h2", "http/1.1"];
  const socket = connect({ host, port: Number(port), ca, cert, key, ALPNProtocols });
  socket.on("error", () => undefined);
  let answer = "";
  socket.on("data", (piece) => (answer += String(piece)));
  socket.write("GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  await new Promise((resolve) => socket.once("close", resolve));
  expect(answer).toMatch(/^HTTP\/1.1 200 OK[^]*"etcdserver"/);
});

test("a certificate that was revoked is refused, by a list as etcd reads it, and others are not", async () => {
  const revoked = authority.issue(["extendedKeyUsage = clientAuth"]);
  const der = join(authority.folder, "crl.der");
  execFileSync("openssl", ["crl", "-in", authority.revoke(revoked), "-outform", "DER", "-out", der]);
  const flags = ["--client-cert-auth", "--client-crl-file", der];
  const files = { "cert-file": ours.cert, "key-file": ours.key, "trusted-ca-file": authority.caFile };
  for (const [flag, file] of Object.entries(files)) flags.push(`--${flag}`, String(file));
  await using one = await CoreCluster.create(1, { flags, clientScheme: "https" });
  one.servers[0]!.start();
  const [{ endpoint }] = one.servers as [(typeof one.servers)[0]];
  await expect.poll(() => json(endpoint, ours).catch(() => ""), { timeout: 30_000 }).toMatch("header");
  await expect(json(endpoint, revoked)).rejects.toThrow(/revoked|closed|hang up|reset/);
});

test("a server without a certificate of the authority is refused, and the message says so", async () => {
  const [first] = cluster.servers;
  const socket = connect({ host: "127.0.0.1", port: first!.peerPort, rejectUnauthorized: false });
  socket.on("secureConnect", () => socket.write("hello"));
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("close", resolve));
  await expect.poll(() => first!.output).toMatch(/127.0.0.1 was refused: .*certificate/);
});

test("servers that share an authority with clients say so when they start", async () => {
  for (const server of cluster.servers)
    await expect.poll(() => server.output).toContain("with a client's certificate one can speak as a server");
});

test("servers with an authority of their own, or with allowed names, say nothing of that", async () => {
  const both = { trustedCaFile: authority.caFile };
  const own = { trustedCaFile: stranger.caFile };
  const allowed = { ...both, allowed: { kind: "common name", names: ["peer"] } } as const;
  expect(isOpenToClients(both, both)).toBe(true);
  for (const peer of [own, allowed, undefined]) expect(isOpenToClients(both, peer)).toBe(false);
  expect(isOpenToClients(undefined, both)).toBe(false);
});

function contents({ ca, cert, key }: TlsFiles): { ca: Buffer; cert: Buffer; key: Buffer } {
  return { ca: readFileSync(String(ca)), cert: readFileSync(String(cert)), key: readFileSync(String(key)) };
}

/** The answer of etcd's Lock service to a client without a token: the key, or the reason for the refusal. */
async function lock(endpoint: string, tls: TlsFiles, name: string): Promise<string> {
  const { ca, cert, key } = contents(tls);
  const client = new Client(endpoint, credentials.createSsl(ca, key, cert));
  try {
    return await new Promise((resolve) => {
      client.makeUnaryRequest(
        "/v3lockpb.Lock/Lock",
        (words: string) => {
          const request = create(LockRequestSchema, { name: Buffer.from(words) });
          return Buffer.from(toBinary(LockRequestSchema, request));
        },
        (bytes) => fromBinary(LockResponseSchema, bytes),
        name,
        (error, response) => resolve(error?.details ?? Buffer.from(response!.key).toString()),
      );
    });
  } finally {
    client.close();
  }
}

/** The same for a read over the JSON API. */
function json(endpoint: string, tls: TlsFiles): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { method: "POST", ...contents(tls), agent: false };
    const asked = httpsRequest(`https://${endpoint}/v3/kv/range`, options, (response) => {
      let text = "";
      response.on("data", (piece: Buffer) => (text += piece.toString()));
      response.once("end", () => resolve(text));
    });
    asked.once("error", reject);
    asked.end(JSON.stringify({ key: Buffer.from("a/1").toString("base64") }));
  });
}

test("who gives no token is the user of the certificate's common name, through Lock, too, and no more", async () => {
  const [ann, unknown] = [1, 2].map(() => authority.issue(["extendedKeyUsage = clientAuth"]));
  const name = basename(String(ann!.cert), ".pem");
  const { endpoint } = cluster.servers[0]!;
  await expect.poll(() => etcdctl(["put", "b", "1"], ours).catch(() => ""), { timeout: 30_000 }).toBe("OK\n");
  for (const line of [
    "user add root:rootpw",
    "user grant-role root root",
    `user add ${name} --no-password`,
    "role add some",
    "role grant-permission some readwrite a/ --prefix",
    `user grant-role ${name} some`,
    "auth enable",
  ])
    await etcdctl(line.split(" "), ours);
  expect(await etcdctl(["put", "a/1", "x"], ann)).toBe("OK\n");
  await expect(etcdctl(["get", "b"], ann)).rejects.toThrow("permission denied");
  await expect(etcdctl(["get", "a/1"], unknown)).rejects.toThrow("permission denied");
  // A token overrides the certificate.
  expect(await etcdctl(["--user", "root:rootpw", "get", "b"], ann)).toBe("b\n1\n");
  expect(await lock(endpoint, ann!, "a/lock")).toMatch(/^a\/lock\//);
  expect(await lock(endpoint, ann!, "b")).toMatch("permission denied");
  expect(await lock(endpoint, unknown!, "a/lock")).toMatch("permission denied");
  // As in etcd, the JSON API identifies users only by token.
  expect(await json(endpoint, ann!)).toMatch("user name is empty");
  await etcdctl(["--user", "root:rootpw", "auth", "disable"], ann);
});
