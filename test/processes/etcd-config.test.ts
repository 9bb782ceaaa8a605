import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { mainPath } from "../support/built.js";

/** The keys of the sample file of etcd 3.5, with the values that they have there. */
const sample = (client: number, peer: number) => `
name: 'default'
data-dir:
wal-dir:
snapshot-count: 10000
heartbeat-interval: 100
election-timeout: 1000
quota-backend-bytes: 0
listen-peer-urls: http://localhost:${peer}
listen-client-urls: http://localhost:${client}
max-snapshots: 5
max-wals: 5
cors:
initial-advertise-peer-urls: http://localhost:${peer}
advertise-client-urls: http://localhost:${client}
discovery:
discovery-fallback: 'proxy'
discovery-proxy:
discovery-srv:
initial-cluster:
initial-cluster-token: 'etcd-cluster'
initial-cluster-state: 'new'
strict-reconfig-check: false
enable-pprof: true
proxy: 'off'
proxy-failure-wait: 5000
proxy-refresh-interval: 30000
proxy-dial-timeout: 1000
proxy-write-timeout: 5000
proxy-read-timeout: 0
client-transport-security:
  cert-file:
  key-file:
  client-cert-auth: false
  trusted-ca-file:
  auto-tls: false
peer-transport-security:
  cert-file:
  key-file:
  client-cert-auth: false
  trusted-ca-file:
  auto-tls: false
self-signed-cert-validity: 1
log-level: debug
logger: zap
log-outputs: [stderr]
force-new-cluster: false
auto-compaction-mode: periodic
auto-compaction-retention: "1"
cipher-suites: [
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
]
tls-min-version: 'TLS1.2'
tls-max-version: 'TLS1.3'
`;

/** The sample of etcd 3.4: with its own option for the log level, and without later keys. */
const older = (client: number, peer: number) =>
  sample(client, peer)
    .replace(/self-signed-cert-validity[^]*/, "")
    .concat("debug: false\nlogger: zap\nlog-outputs: [stderr]\nforce-new-cluster: false\n")
    .concat('auto-compaction-mode: periodic\nauto-compaction-retention: "1"\n');

test.each([
  ["3.5", sample],
  ["3.4", older],
])(
  "a server starts with the sample configuration of etcd %s, and reports what has no effect",
  async (_, textFor) => {
    const folder = mkdtempSync(join(tmpdir(), "lh-sample-"));
    const [client, peer] = (await freePorts(2)) as [number, number];
    const file = join(folder, "etcd.conf.yml");
    writeFileSync(file, textFor(client, peer));
    const child = spawn(process.execPath, [mainPath, "core", "--config-file", file], { cwd: folder });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (piece) => (output += String(piece)));
    try {
      const health = () =>
        fetch(`http://localhost:${client}/health`).then(
          (response) => response.text(),
          (error: unknown) => `${String(error)}; exit code ${child.exitCode}: ${output}`,
        );
      await expect.poll(health, { timeout: 60_000 }).toBe('{"health":"true"}');
      expect(output).toContain("--strict-reconfig-check has no effect: it is always on");
      expect(output).toContain("--max-snapshots has no effect");
      // Options that only state what holds anyway are not reported.
      expect(output).not.toMatch(/--proxy|--tls-m|--self-signed/);
      child.kill("SIGTERM");
      await once(child, "exit");
      expect(child.exitCode).toBe(0);
    } finally {
      child.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
