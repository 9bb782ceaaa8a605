import { describe, expect, test } from "vitest";
import { configOf } from "./config.js";

const compaction = (autoCompactionRetention?: string, autoCompactionMode?: string) => {
  const mode = autoCompactionMode === undefined ? {} : { autoCompactionMode };
  const retention = autoCompactionRetention === undefined ? {} : { autoCompactionRetention };
  return configOf({ ...mode, ...retention }).autoCompaction;
};

describe("history", () => {
  test("is bounded by default; a retention without a mode is a time, as in etcd; 0 disables compaction", () => {
    expect(compaction()).toEqual({ mode: "revision", keepRevisions: 100_000 });
    expect(compaction("1")).toEqual({ mode: "periodic", keepMs: 3_600_000 });
    expect(compaction("1h30m")).toEqual({ mode: "periodic", keepMs: 5_400_000 });
    expect(compaction("90s", "periodic")).toEqual({ mode: "periodic", keepMs: 90_000 });
    expect(compaction(undefined, "periodic")).toEqual({ mode: "periodic", keepMs: 3_600_000 });
    expect(compaction("500", "revision")).toEqual({ mode: "revision", keepRevisions: 500 });
    expect([compaction("0"), compaction("0", "revision"), compaction("0", "periodic")]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  test.each([
    ["a while", undefined],
    ["5s", "periodic"],
    ["-1", undefined],
    ["1h30", undefined],
    ["1h", "revision"],
  ])("a retention of %s is refused", (retention, mode) => {
    expect(() => compaction(retention, mode)).toThrow(/--auto-compaction-retention is ".*", and must be/);
  });

  test("an unknown mode is refused", () => {
    expect(() => compaction("1", "daily")).toThrow('--auto-compaction-mode is "daily"');
  });
});

test("the quota leaves room in memory by default; 0 means the default, as in etcd; too small a quota is refused", () => {
  const { quotaBytes } = configOf({});
  expect(quotaBytes).toBeGreaterThan(16 * 1024 ** 2);
  expect(quotaBytes).toBeLessThanOrEqual(2 * 1024 ** 3);
  expect(configOf({ quotaBackendBytes: "0" }).quotaBytes).toBe(quotaBytes);
  expect(configOf({ quotaBackendBytes: "8589934592" }).quotaBytes).toBe(8_589_934_592);
  for (const quotaBackendBytes of ["1000", "-5", "2GB"])
    expect(() => configOf({ quotaBackendBytes })).toThrow(/--quota-backend-bytes is/);
});

test("the interval of comparisons is at least a second, or 0 for never", () => {
  const everyMs = (text?: string) => configOf({ experimentalCorruptCheckTime: text }).corruptCheckMs;
  expect([undefined, "0", "0s", "1s", "1h30m"].map(everyMs)).toEqual([0, 0, 0, 1_000, 5_400_000]);
  for (const text of ["500ms", "5", "often", "-1s", ""])
    expect(() => everyMs(text)).toThrow(/--experimental-corrupt-check-time is ".*", and must be a time/);
});

const ofPeers = { peerCertFile: "c", peerKeyFile: "k", peerTrustedCaFile: "a" };
const ofClients = { certFile: "c", keyFile: "k", trustedCaFile: "a" };

test("allowed names are separated by commas, and an invalid one is refused", () => {
  const hosts = "core1.example.com, 10.0.0.1 ,::1,*.example.com";
  const names = ["core1.example.com", "10.0.0.1", "::1", "*.example.com"];
  const { clientTls } = configOf({ ...ofClients, clientCertAllowedHostname: hosts });
  expect(clientTls?.allowed).toEqual({ kind: "host", names });
  expect(configOf({ ...ofPeers, peerCertAllowedHostname: hosts }).peerTls?.allowed).toEqual(
    clientTls?.allowed,
  );
  const { peerTls } = configOf({ ...ofPeers, peerCertAllowedCn: "core one, core two" });
  expect(peerTls?.allowed).toEqual({ kind: "common name", names: ["core one", "core two"] });
  for (const none of [".example.com", "a,,b", " ", "a b", "a\0b", "a/b"]) {
    expect(() => configOf({ ...ofPeers, peerCertAllowedHostname: none })).toThrow(/no host/);
    expect(() => configOf({ ...ofClients, clientCertAllowedHostname: none })).toThrow(/no host/);
  }
  expect(() => configOf({ ...ofPeers, peerCertAllowedCn: "a, " })).toThrow(/empty name/);
});

test("restrictions on certificates require an authority: otherwise no peer shows a certificate", () => {
  const none = { trustedCaFile: undefined, peerTrustedCaFile: undefined };
  for (const flags of [
    { ...ofClients, clientCrlFile: "list" },
    { ...ofClients, clientCertAllowedHostname: "a" },
    { ...ofPeers, peerCrlFile: "list" },
    { ...ofPeers, peerCertAllowedCn: "a" },
  ]) {
    expect(() => configOf({ ...flags, ...none })).toThrow(/trusted-ca-file/);
    expect(configOf(flags)).toBeDefined();
  }
});
