import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { get, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { connect } from "node:tls";
import { expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { leasehold } from "../support/built.js";
import { Authority } from "../support/pki.js";
import { CoreCluster } from "./support/core-cluster.js";
import { etcdctl } from "./support/etcdctl.js";

/** Flags of `leasehold core`, each tested with running servers. */

const patience = { timeout: 30_000 };

/** An etcdctl that does not verify the server's certificate. */
const trusting = (cluster: CoreCluster, ...words: string[]) =>
  etcdctl(
    cluster.servers.map(({ endpoint }) => `https://${endpoint}`).join(),
    "--insecure-transport=false",
    "--insecure-skip-tls-verify",
    ...words,
  );

/** The JSON API over TLS, whoever shows what certificate there. */
function jsonOf(endpoint: string, path: string, body: object): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const options = { method: "POST", rejectUnauthorized: false, agent: false };
    const asked = httpsRequest(`https://${endpoint}${path}`, options, (response) => {
      let text = "";
      response.on("data", (piece: Buffer) => (text += piece.toString()));
      response.once("end", () => resolve(JSON.parse(text)));
    });
    asked.once("error", reject);
    asked.end(JSON.stringify(body));
  });
}

/** What a port shows to those who come, as PEM's fingerprint; undefined where there is no TLS. */
function shownAt(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256);
      socket.destroy();
    });
    socket.on("error", () => resolve(undefined));
  });
}

test("--auto-tls and --peer-auto-tls: self-made certificates on both ports, kept in the data directory", async () => {
  const cluster = await CoreCluster.create(3, { scheme: "https", flags: ["--auto-tls", "--peer-auto-tls"] });
  try {
    for (const server of cluster.servers) server.start();
    await expect.poll(() => trusting(cluster, "put", "a", "1").catch(String), patience).toBe("OK\n");
    // All of them have it, so they can talk to each other.
    for (const { endpoint } of cluster.servers) {
      const key = Buffer.from("a").toString("base64");
      expect(await jsonOf(endpoint, "/v3/kv/range", { key })).toMatchObject({ count: "1" });
    }
    const [first] = cluster.servers;
    for (const [kind, port] of [
      ["client", Number(first!.endpoint.split(":")[1])],
      ["peer", first!.peerPort],
    ] as const) {
      const folder = join(first!.dataDir, "fixtures", kind);
      const certificate = new X509Certificate(readFileSync(join(folder, "cert.pem")));
      expect(statSync(join(folder, "key.pem")).mode & 0o777).toBe(0o600);
      expect(certificate.checkIP("127.0.0.1")).toBe("127.0.0.1");
      expect(await shownAt(port)).toBe(certificate.fingerprint256);
      await first!.kill();
      first!.start();
      await expect.poll(() => shownAt(port), patience).toBe(certificate.fingerprint256);
    }
    await expect.poll(() => trusting(cluster, "get", "a").catch(String), patience).toBe("a\n1\n");
    // Who wants to know with whom it talks does not talk to them.
    const distrusting = etcdctl(`https://${first!.endpoint}`, "--insecure-transport=false", "get", "a");
    await expect(distrusting).rejects.toThrow(/deadline exceeded|certificate/);
  } finally {
    await cluster[Symbol.asyncDispose]();
  }
});

test("--max-request-bytes and --max-txn-ops bound requests, upwards and downwards", async () => {
  const value = (bytes: number) => "x".repeat(bytes);
  const transaction = (puts: number) => {
    const requests = Array.from({ length: puts }, (_, index) => ({
      request_put: { key: Buffer.from(`k${index}`).toString("base64") },
    }));
    return JSON.stringify({ success: requests });
  };
  const post = async (endpoint: string, puts: number) => {
    const answer = await fetch(`http://${endpoint}/v3/kv/txn`, { method: "POST", body: transaction(puts) });
    return { status: answer.status, text: await answer.text() };
  };
  for (const [flags, fits, isTooLarge, operations] of [
    [["--max-request-bytes", "3000000", "--max-txn-ops", "1024"], 2_900_000, 3_000_001, 1_024],
    [["--max-request-bytes", "1000", "--max-txn-ops", "2"], 800, 1_001, 2],
  ] as const) {
    const cluster = await CoreCluster.start(1, { flags });
    const [server] = cluster.servers;
    try {
      await server!.client.put("a", value(fits));
      await expect(server!.client.put("a", value(isTooLarge))).rejects.toThrow(
        "etcdserver: request is too large",
      );
      expect((await server!.client.range("a")).kvs[0]?.value).toHaveLength(fits);
      expect((await post(server!.endpoint, operations)).status).toBe(200);
      expect(await post(server!.endpoint, operations + 1)).toMatchObject({
        status: 400,
        text: expect.stringContaining("too many operations in txn request") as string,
      });
    } finally {
      await cluster[Symbol.asyncDispose]();
    }
  }
});

test("--listen-metrics-urls serves metrics and health there, and nothing else", async () => {
  const [port] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const cluster = await CoreCluster.start(1, { flags: ["--listen-metrics-urls", url] });
  try {
    expect(await (await fetch(`${url}/metrics`)).text()).toMatch(/^etcd_server_has_leader 1$/m);
    expect(await (await fetch(`${url}/health`)).json()).toEqual({ health: "true" });
    for (const [path, method] of [
      ["/version", "GET"],
      ["/v3/kv/range", "POST"],
    ] as const)
      expect((await fetch(url + path, { method })).status).toBe(404);
    await expect(etcdctl(`127.0.0.1:${port}`, "--command-timeout=1s", "get", "a")).rejects.toThrow(
      /Error|deadline/,
    );
  } finally {
    await cluster[Symbol.asyncDispose]();
  }
});

test("--client-crl-file: a client with a revoked certificate is refused, also while the server runs", async () => {
  const authority = new Authority();
  try {
    const usage = ["subjectAltName = IP:127.0.0.1", "extendedKeyUsage = serverAuth, clientAuth"];
    const [own, good, bad, later] = Array.from({ length: 4 }, () => authority.issue(usage));
    const crl = authority.revoke(bad!);
    const flags = ["--cert-file", own!.cert, "--key-file", own!.key, "--trusted-ca-file", own!.ca];
    flags.push("--client-cert-auth", "--client-crl-file", crl, "--peer-auto-tls");
    const cluster = await CoreCluster.create(1, { scheme: "https", flags });
    try {
      cluster.servers[0]!.start();
      const ask = ({ ca, cert, key }: typeof own & object) => {
        const tls = ["--cacert", ca, "--cert", cert, "--key", key, "--command-timeout=2s"];
        return etcdctl(`https://${cluster.endpoints}`, ...tls, "put", "a", "1").catch(() => "refused");
      };
      await expect.poll(() => ask(good!), patience).toBe("OK\n");
      expect([await ask(bad!), await ask(later!)]).toEqual(["refused", "OK\n"]);
      authority.revoke(later!);
      await expect.poll(() => ask(later!), { timeout: 20_000, interval: 500 }).toBe("refused");
      expect(await ask(good!)).toBe("OK\n");
    } finally {
      await cluster[Symbol.asyncDispose]();
    }
  } finally {
    authority.remove();
  }
});

test("--max-concurrent-streams is what a connection is told", async () => {
  const cluster = await CoreCluster.start(1, { flags: ["--max-concurrent-streams", "7"] });
  try {
    const session = connectHttp2(`http://${cluster.endpoints}`);
    const [{ maxConcurrentStreams }] = await new Promise<[{ maxConcurrentStreams?: number }]>((resolve) =>
      session.once("remoteSettings", (settings) => resolve([settings])),
    );
    session.destroy();
    expect(maxConcurrentStreams).toBe(7);
  } finally {
    await cluster[Symbol.asyncDispose]();
  }
});

test.each(["leasehold", "etcd"] as const)(
  "--max-concurrent-streams bounds the JSON calls of all connections, and others wait: %s",
  async (program) => {
    const cluster = await CoreCluster.start(1, { program, flags: ["--max-concurrent-streams", "2"] });
    const [host, port] = cluster.endpoints.split(":");
    const asked = (path: string, body: object) => {
      const said = { text: "" };
      const call = request({ host, port, path, method: "POST", agent: false }, (answer) =>
        answer.on("data", (piece: Buffer) => (said.text += piece.toString())),
      );
      call.on("error", () => undefined).end(JSON.stringify(body));
      return { call, said };
    };
    const watch = () => asked("/v3/watch", { create_request: { key: "YQ==" } });
    try {
      const watches = [watch(), watch()];
      for (const { said } of watches)
        await expect.poll(() => said.text, patience).toContain('"created":true');
      const [leaves, stays] = Array.from({ length: 2 }, () => asked("/v3/kv/range", { key: "YQ==" }));
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect([leaves!.said.text, stays!.said.text]).toEqual(["", ""]);
      // gRPC has limits of its own.
      expect((await cluster.servers[0]!.client.range("a")).count).toBe(0n);
      leaves!.call.destroy();
      watches[0]!.call.destroy();
      await expect.poll(() => stays!.said.text, patience).toContain('"revision"');
      for (let count = 0; count < 5; count += 1) {
        const { said } = asked("/v3/kv/range", { key: "YQ==" });
        await expect.poll(() => said.text, patience).toContain('"revision"');
      }
    } finally {
      await cluster[Symbol.asyncDispose]();
    }
  },
);

test("--log-level and --log-outputs say what is written where; a flag without effect is named", async () => {
  const run = async (...flags: string[]) => {
    const [client, peer] = await freePorts(2);
    const folder = join(authority.folder, String(client));
    const urls = ["--listen-client-urls", `http://127.0.0.1:${client}`];
    urls.push("--listen-peer-urls", `http://127.0.0.1:${peer}`);
    urls.push("--initial-advertise-peer-urls", `http://127.0.0.1:${peer}`);
    const server = leasehold(["core", "--data-dir", folder, ...urls, ...flags]);
    const serves = () =>
      new Promise<boolean>((resolve) =>
        get(`http://127.0.0.1:${client}/health`, (answer) => resolve(answer.statusCode === 200)).on(
          "error",
          () => resolve(false),
        ),
      );
    await expect.poll(serves, patience).toBe(true);
    server.process.kill("SIGTERM");
    return server.finished;
  };
  const authority = new Authority();
  try {
    const usual = await run("--max-wals=5");
    expect(usual.code).toBe(0);
    expect(usual.stdout).toMatch(/serves clients at/);
    expect(usual.stderr).toMatch(/setting-ignored: --max-wals has no effect: the log is kept/);
    expect(usual.stderr).not.toMatch(/serves clients at/);
    const apart = await run("--log-outputs", "stderr");
    expect([apart.stdout, /serves clients at/.test(apart.stderr)]).toEqual(["", true]);
    const quiet = await run("--log-level", "error", "--log-outputs", "stdout");
    expect([quiet.stdout, quiet.stderr]).toEqual(["", ""]);
  } finally {
    authority.remove();
  }
});
