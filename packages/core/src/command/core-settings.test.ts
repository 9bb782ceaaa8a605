import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { knownFlags } from "./core-command.js";
import { coreSettings, foreign, type Given } from "./core-settings.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lh-settings-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const settings = (line: Given, environment: NodeJS.ProcessEnv = {}) =>
  coreSettings(line, environment, knownFlags);

test("the page lists each flag of etcd that has no effect or is refused", () => {
  const page = readFileSync(new URL("../../../../docs/cli-core.md", import.meta.url), "utf8");
  expect(Object.keys(foreign).filter((flag) => !page.includes(`\`--${flag}\``))).toEqual([]);
});

test("settings missing on the command line come from the environment", async () => {
  const environment = {
    ETCD_NAME: "a",
    ETCD_DATA_DIR: "/d",
    ETCD_CLIENT_CERT_AUTH: "true",
    ETCDCTL_API: "3",
  };
  expect(await settings({ name: "b" }, environment)).toEqual({
    flags: { name: "b", dataDir: "/d", clientCertAuth: true },
    warnings: [],
  });
  // Kubernetes sets such variables in each pod when there is a service named etcd.
  const { warnings } = await settings({}, { ETCD_SERVICE_HOST: "10.0.0.1" });
  expect(warnings).toEqual(["the environment has ETCD_SERVICE_HOST, which is no setting of the core"]);
  await expect(settings({}, { ETCD_CLIENT_CERT_AUTH: "maybe" })).rejects.toThrow("must be true or false");
});

test("a config file in etcd's format is the only source of settings", async () => {
  const file = join(folder, "etcd.yaml");
  writeFileSync(
    file,
    `name: 'a'
data-dir: /d
snapshot-count: 5000
initial-cluster: a=http://h:2380
strict-reconfig-check: false
log-outputs: [stderr]
client-transport-security:
  cert-file: c
  client-cert-auth: true
  crl-file: r
peer-transport-security:
  key-file: k
`,
  );
  expect(await settings({ configFile: file }, { ETCD_NAME: "other" })).toEqual({
    flags: {
      name: "a",
      dataDir: "/d",
      snapshotCount: "5000",
      initialCluster: "a=http://h:2380",
      logOutputs: "stderr",
      certFile: "c",
      clientCertAuth: true,
      clientCrlFile: "r",
      peerKeyFile: "k",
    },
    warnings: ["--strict-reconfig-check has no effect: it is always on"],
  });
  await expect(settings({ configFile: file, name: "b" })).rejects.toThrow(
    "--name stands beside --config-file",
  );
  writeFileSync(file, "- a");
  await expect(settings({ configFile: file })).rejects.toThrow("no list of settings");
  writeFileSync(file, "name: [");
  await expect(settings({ configFile: file })).rejects.toThrow("cannot be read");
});

test("an etcd flag without effect causes a warning, and a misleading one is refused", async () => {
  const warned = await settings({
    maxWals: "5",
    preVote: "true",
    experimentalTxnModeWriteWithSharedBuffer: "true",
  });
  expect(warned.flags).toEqual({});
  expect(warned.warnings).toEqual([
    "--max-wals has no effect: the log is kept as long as it is needed",
    "--experimental-txn-mode-write-with-shared-buffer has no effect: the core does not have it",
  ]);
  for (const line of [{ walDir: "/w" }, { enableV2: "true" }, { unsafeNoFsync: "true" }])
    await expect(settings(line)).rejects.toThrow("cannot be taken");
  expect(await settings({ cors: "*", unsafeNoFsync: "false" })).toEqual({
    flags: { cors: "*" },
    warnings: [],
  });
});
