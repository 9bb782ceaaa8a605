import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { connect } from "node:tls";
import { expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { leasehold } from "../support/built.js";
import { Authority } from "../support/pki.js";
import { CoreCluster } from "./support/core-cluster.js";
import { etcdctl } from "./support/etcdctl.js";

/** etcd's flags for client access. Where etcd has the same flag, it must pass the same test. */

const patience = { timeout: 30_000 };
const programs = ["leasehold", "etcd"] as const;
const both = "extendedKeyUsage = serverAuth, clientAuth";

type Issued = ReturnType<Authority["issue"]>;

/** What a server with certificates on both sides is started with. */
const tlsFlags = (own: Issued, ...more: string[]) =>
  ["", "peer-"]
    .flatMap((kind) => [`--${kind}cert-file`, own.cert, `--${kind}key-file`, own.key])
    .concat(
      "--trusted-ca-file",
      own.ca,
      "--client-cert-auth",
      "--peer-trusted-ca-file",
      own.ca,
      "--peer-client-cert-auth",
      ...more,
    );

/** `etcdctl put` with this certificate. */
const ask = (cluster: CoreCluster, { ca, cert, key }: Issued) =>
  etcdctl(
    `https://${cluster.servers[0]!.endpoint}`,
    "--cacert",
    ca,
    "--cert",
    cert,
    "--key",
    key,
    "--command-timeout=2s",
    "put",
    "a",
    "1",
  ).catch(() => "refused");

/** The suite that is spoken with a client that has these only; nothing if none is. */
function spoken(
  endpoint: string,
  ciphers: string,
  maxVersion: "TLSv1.2" | "TLSv1.3",
): Promise<string | undefined> {
  const [host, port] = endpoint.split(":");
  return new Promise((resolve) => {
    const socket = connect(
      { host, port: Number(port), rejectUnauthorized: false, ciphers, maxVersion },
      () => {
        resolve(socket.getCipher().standardName);
        socket.destroy();
      },
    );
    socket.on("error", () => resolve(undefined));
  });
}

test.each(programs)(
  "--cipher-suites: nothing else is spoken, with clients and among servers: %s",
  async (program) => {
    const authority = new Authority();
    const own = authority.issue(["subjectAltName = IP:127.0.0.1", both]);
    const suites = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305";
    const files = ["", "peer-"].flatMap((kind) => [
      `--${kind}cert-file`,
      own.cert,
      `--${kind}key-file`,
      own.key,
    ]);
    const flags = [...files, "--peer-trusted-ca-file", own.ca, "--cipher-suites", suites];
    await using cluster = await CoreCluster.create(3, { program, scheme: "https", flags });
    for (const server of cluster.servers) server.start();
    const { endpoint } = cluster.servers[0]!;
    await expect
      .poll(() => spoken(endpoint, "ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2"), patience)
      .toBe("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
    expect(await spoken(endpoint, "ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2")).toBeUndefined();
    // An etcd built with a later Go supports TLS 1.3 in addition to the configured versions.
    const later = await spoken(endpoint, "TLS_AES_128_GCM_SHA256", "TLSv1.3");
    expect(program === "etcd" || later === undefined).toBe(true);
    const put = () =>
      etcdctl(`https://${endpoint}`, "--cacert", own.ca, "--command-timeout=2s", "put", "a", "1").catch(
        String,
      );
    await expect.poll(put, patience).toBe("OK\n");
    authority.remove();
  },
);

test.each(programs)(
  "--client-cert-allowed-hostname: a certificate for another host is not enough: %s",
  async (program) => {
    const authority = new Authority();
    const own = authority.issue(["subjectAltName = IP:127.0.0.1, DNS:localhost", both]);
    const [good, other] = ["DNS:localhost", "IP:127.0.0.1"].map((name) =>
      authority.issue([`subjectAltName = ${name}`, "extendedKeyUsage = clientAuth"]),
    );
    const flags = tlsFlags(own, "--client-cert-allowed-hostname", "localhost");
    await using cluster = await CoreCluster.create(1, { program, scheme: "https", flags });
    cluster.servers[0]!.start();
    await expect.poll(() => ask(cluster, good!), patience).toBe("OK\n");
    expect(await ask(cluster, other!)).toBe("refused");
    authority.remove();
  },
);

test.each(
  programs.flatMap((program) => (["cn", "hostname"] as const).map((kind) => [kind, program] as const)),
)("--peer-cert-allowed-%s: a server with another certificate takes no part: %s", async (kind, program) => {
  const authority = new Authority();
  const own = authority.issue(["subjectAltName = IP:127.0.0.1, DNS:localhost", both]);
  const other = authority.issue(["subjectAltName = IP:127.0.0.1", both]);
  const allowed = kind === "cn" ? /([^/]+)\.pem$/.exec(own.cert)![1]! : "localhost";
  const flags = [
    "--peer-trusted-ca-file",
    own.ca,
    "--peer-client-cert-auth",
    `--peer-cert-allowed-${kind}`,
    allowed,
  ];
  const environment = (index: number) => {
    const { cert, key } = index === 2 ? other : own;
    return { ETCD_PEER_CERT_FILE: cert, ETCD_PEER_KEY_FILE: key };
  };
  await using cluster = await CoreCluster.create(3, {
    program,
    scheme: "https",
    clientScheme: "http",
    flags,
    environment,
  });
  for (const server of cluster.servers) server.start();
  const [first, second, third] = cluster.servers;
  for (const server of [first!, second!])
    await expect
      .poll(
        () =>
          server.client.put("a", "1").then(
            () => "put",
            () => "",
          ),
        patience,
      )
      .toBe("put");
  await expect(third!.client.range("a", 2_000)).rejects.toThrow(/./);
  expect(program === "etcd" || /client certificate authentication failed/.test(first!.output)).toBe(true);
  authority.remove();
});

test.each(programs)(
  "--trusted-ca-file alone: a certificate of it is wanted, and its name is no user: %s",
  async (program) => {
    const [authority, stranger] = [new Authority(), new Authority("/CN=somebody else")];
    const own = authority.issue(["subjectAltName = IP:127.0.0.1, DNS:localhost", both]);
    const flags = ["", "peer-"].flatMap((kind) => [
      `--${kind}cert-file`,
      own.cert,
      `--${kind}key-file`,
      own.key,
      `--${kind}trusted-ca-file`,
      own.ca,
    ]);
    await using cluster = await CoreCluster.create(1, { program, scheme: "https", flags });
    const [server] = cluster.servers;
    server!.start();
    await expect.poll(() => ask(cluster, own), patience).toBe("OK\n");
    const other = stranger.issue(["extendedKeyUsage = clientAuth"]);
    expect(await ask(cluster, { ...other, ca: own.ca })).toBe("refused");
    const shownNothing = ["--cacert", own.ca, "--command-timeout=2s", "put", "a", "1"];
    await expect(etcdctl(`https://${server!.endpoint}`, ...shownNothing)).rejects.toThrow(/./);
    const peer = new Promise<string>((resolve) => {
      const socket = connect({ host: "127.0.0.1", port: server!.peerPort, rejectUnauthorized: false });
      socket.on("secureConnect", () => socket.write("GET /version HTTP/1.0\r\n\r\n"));
      socket.on("data", (piece) => resolve(String(piece)));
      socket.on("error", ({ message }) => resolve(message)).on("close", () => resolve("closed"));
    });
    expect(await peer).toMatch(/alert|closed|reset|EPIPE/i);
    for (const each of [authority, stranger]) each.remove();
  },
);

test.each(programs)("--client-crl-file: a list that is out of date stays in use: %s", async (program) => {
  const authority = new Authority();
  const own = authority.issue(["subjectAltName = IP:127.0.0.1", both]);
  const [good, bad] = [authority.issue([both]), authority.issue([both])];
  const crl = authority.revoke(bad, -3);
  await using cluster = await CoreCluster.create(1, {
    program,
    scheme: "https",
    flags: tlsFlags(own, "--client-crl-file", crl),
  });
  cluster.servers[0]!.start();
  await expect.poll(() => ask(cluster, good), patience).toBe("OK\n");
  expect(await ask(cluster, bad)).toBe("refused");
  expect(program === "etcd" || /crl.pem is out of date/.test(cluster.servers[0]!.output)).toBe(true);
  authority.remove();
});

/** What a page of this origin, or who asks under this name, is told. */
function asked(
  endpoint: string,
  headers: Readonly<Record<string, string>>,
): Promise<readonly [number, unknown]> {
  const [host, port] = endpoint.split(":");
  return new Promise((resolve, reject) => {
    const call = request({ host, port, path: "/version", headers, agent: false }, (answer) => {
      answer.resume();
      resolve([answer.statusCode!, answer.headers["access-control-allow-origin"]]);
    });
    call.on("error", reject).end();
  });
}

test.each(programs)("--cors and --host-whitelist: whose pages, and under which name: %s", async (program) => {
  const flags = [
    "--cors",
    "https://a.example:8443,https://b.example:8443",
    "--host-whitelist",
    "core.example,127.0.0.1",
  ];
  await using cluster = await CoreCluster.start(1, { program, flags });
  const { endpoint } = cluster.servers[0]!;
  expect(await asked(endpoint, { Origin: "https://b.example:8443" })).toEqual([
    200,
    "https://b.example:8443",
  ]);
  expect(await asked(endpoint, { Origin: "https://c.example" })).toEqual([200, undefined]);
  expect(await asked(endpoint, { Host: "core.example:2379" })).toEqual([200, undefined]);
  expect(await asked(endpoint, { Host: "evil.example" })).toEqual([421, undefined]);
});

test.each(programs)("counters of puts and deletions are etcd's: %s", async (program) => {
  await using cluster = await CoreCluster.start(1, { program });
  const { endpoints } = cluster;
  for (const key of ["a1", "a2", "b"]) await etcdctl(endpoints, "put", key, "x");
  await etcdctl(endpoints, "put", "b", "y");
  await etcdctl(endpoints, "del", "a", "--prefix");
  await etcdctl(endpoints, "del", "none");
  const lease = /lease (\S+) granted/.exec(await etcdctl(endpoints, "lease", "grant", "60"))![1]!;
  for (const key of ["l1", "l2"]) await etcdctl(endpoints, "put", `--lease=${lease}`, key, "x");
  await etcdctl(endpoints, "lease", "revoke", lease);
  const text = await (await fetch(`http://${endpoints}/metrics`)).text();
  const counts = [
    "mvcc_put_total",
    "debugging_mvcc_put_total",
    "mvcc_delete_total",
    "debugging_mvcc_delete_total",
    "debugging_mvcc_keys_total",
  ].map((name) => Number(new RegExp(`^etcd_${name} (\\d+)$`, "m").exec(text)?.[1]));
  expect(counts).toEqual([6, 6, 4, 4, 1]);
});

test("Unix sockets and several addresses, for clients and for servers; one that a killed process has left is replaced", async () => {
  const folder = mkdtempSync(join(tmpdir(), "lh-unix-"));
  const [port, peerPort] = await freePorts(2);
  const names = ["a", "b", "c"];
  const place = (name: string, what: string) => `unix://${join(folder, `${name}.${what}`)}`;
  // One of them also has a TCP address.
  const peers = `http://127.0.0.1:${peerPort},${place("a", "more")}`;
  const urlOf = (name: string) => (name === "a" ? `http://127.0.0.1:${peerPort}` : place(name, "peer"));
  const cluster = names.map((name) => `${name}=${urlOf(name)}`).join(",");
  const start = (name: string) =>
    leasehold([
      "core",
      "--name",
      name,
      "--data-dir",
      join(folder, name),
      "--initial-cluster",
      cluster,

      "--listen-peer-urls",
      name === "a" ? peers : urlOf(name),
      "--initial-advertise-peer-urls",
      urlOf(name),
      "--listen-client-urls",
      name === "a" ? `${place("a", "client")},http://127.0.0.1:${port}` : place(name, "client"),
      "--log-outputs",
      `stderr,${join(folder, `${name}.log`)}`,
    ]);
  const servers = new Map(names.map((name) => [name, start(name)]));
  const put = (name: string) =>
    etcdctl(place(name, "client"), "--command-timeout=2s", "put", name, "1").catch(String);
  try {
    for (const name of names) await expect.poll(() => put(name), patience).toBe("OK\n");
    expect(await etcdctl(`127.0.0.1:${port}`, "get", "b", "--print-value-only")).toBe("1\n");
    expect(await etcdctl(place("c", "client"), "member", "list")).toContain(place("b", "peer"));
    servers.get("b")!.process.kill("SIGKILL");
    await servers.get("b")!.finished;
    servers.set("b", start("b"));
    await expect.poll(() => put("b"), patience).toBe("OK\n");
    expect(readFileSync(join(folder, "b.log"), "utf8")).toMatch(
      /^\d{4}-\d\d-\d\dT.*serves clients at unix:/m,
    );
    // While one server listens, no other can listen there.
    const second = leasehold([
      "core",
      "--data-dir",
      join(folder, "d"),
      "--listen-client-urls",
      place("b", "client"),
      "--listen-peer-urls",
      place("d", "peer"),
      "--initial-advertise-peer-urls",
      place("d", "peer"),
    ]);
    expect((await second.finished).stderr).toMatch(/cannot listen on .*b\.client: .*EADDRINUSE/);
    expect(await put("b")).toBe("OK\n");
  } finally {
    for (const { finished, process } of servers.values()) {
      process.kill("SIGKILL");
      await finished;
    }
    rmSync(folder, { recursive: true });
  }
});
