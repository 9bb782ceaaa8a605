import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { leasehold } from "../../../../../../test/support/built.js";
import { Authority } from "../../../../../../test/support/pki.js";
import { proofOfCertificate } from "../../../runtime/security/certificate.js";
import { describeFailure } from "../../common/failure.js";
import { buildProgram } from "../../program.js";
import { DirectoryLock } from "../../../runtime/directory-lock.js";
import { createFile, replaceFile } from "./files.js";
import type { Shown } from "./show.js";

/** `leasehold cert` with the real `openssl`, which also judges the results. */

const printed = vi.hoisted((): string[] => []);
vi.mock(import("../../output/print.js"), async (original) => {
  const printLines = (lines: readonly string[]) => printed.push(...lines) > 0;
  return { ...(await original()), printLines, printLine: (line) => printLines([line]) };
});

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-cert-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const at = (name: string) => join(folder, "pki", name);
const read = (name: string) => readFileSync(at(name), "utf8");
const certificate = (name: string) => new X509Certificate(read(name));

/**
 * Runs the command in this process: a hundred processes would take half a minute. `pki` is a path in the
 * test's folder.
 */
async function cert(...words: string[]): Promise<{ code: number; stdout: string }> {
  printed.length = 0;
  let code = -1;
  const program = await buildProgram((result) => (code = result), ["cert"]);
  const inFolder = words.map((word) => (/^pki(?:\/|$)/.test(word) ? join(folder, word) : word));
  await program.parseAsync(["cert", ...inFolder], { from: "user" });
  return { code, stdout: printed.join("\n") };
}

async function must(...words: string[]): Promise<void> {
  expect(await cert(...words)).toMatchObject({ code: 0 });
}

/** The error with which the command ends. */
async function refusal(...words: string[]): Promise<ReturnType<typeof describeFailure>> {
  const ended = await cert(...words).catch((error: unknown) => describeFailure(error));
  if ("stdout" in ended) throw new Error(`${words.join(" ")} was not refused`);
  return ended;
}

async function shown(...words: string[]): Promise<{ code: number; certificates: Shown[] }> {
  const { code, stdout } = await cert("show", "pki", ...words, "-o", "json");
  return { code, certificates: JSON.parse(stdout) as Shown[] };
}

/** openssl's verdict on a certificate for that side of a connection. */
function verified(name: string, purpose: "sslserver" | "sslclient", ca = "ca.pem", strict = true): string {
  try {
    const words = [
      "verify",
      ...(strict ? ["-x509_strict"] : []),
      "-CAfile",
      at(ca),
      "-purpose",
      purpose,
      at(name),
    ];
    return execFileSync("openssl", words, { encoding: "utf8", stdio: "pipe" }).replace(/^.*: /, "").trim();
  } catch (error) {
    return /^error \d+.*lookup: (.*)$/m.exec((error as { stderr: string }).stderr)?.[1] ?? String(error);
  }
}

const wrongPurpose = expect.stringMatching(/purpose/);

test("an authority and all kinds of certificates are as openssl, members and cores want them", async () => {
  await must("authority", "pki", "--cluster", "prod");
  const hosts = ["--host", "a.example.com", "--host", "10.0.0.1", "--host", "::1"];
  await must("member", "pki", "a", ...hosts);
  await must("node", "pki", "b");
  await must("client", "pki");
  await must("observer", "pki", "eyes");
  await must("core-server", "pki", "s1", ...hosts);
  await must("core-peer", "pki", "p1", ...hosts);
  await must("core-user", "pki", "alice");
  expect(
    ["a", "b", "client", "eyes", "s1", "p1", "alice"].map((name) => [
      name,
      verified(`${name}.pem`, "sslserver"),
      verified(`${name}.pem`, "sslclient"),
    ]),
  ).toEqual([
    ["a", "OK", "OK"],
    ["b", "OK", "OK"],
    ["client", wrongPurpose, "OK"],
    ["eyes", wrongPurpose, "OK"],
    ["s1", "OK", wrongPurpose],
    ["p1", "OK", "OK"],
    ["alice", wrongPurpose, "OK"],
  ]);
  expect(proofOfCertificate(certificate("a.pem"))).toMatchObject({ memberId: "a", cluster: "prod" });
  expect(proofOfCertificate(certificate("client.pem"))).toMatchObject({ roles: ["client", "observer"] });
  expect(proofOfCertificate(certificate("eyes.pem"))).toMatchObject({ roles: ["observer"] });
  for (const name of ["s1.pem", "p1.pem", "alice.pem", "ca.pem"])
    expect(proofOfCertificate(certificate(name))).toMatchObject({ cause: "certificate" });
  expect(certificate("s1.pem").checkHost("a.example.com")).toBe("a.example.com");
  for (const host of ["10.0.0.1", "::1"]) expect(certificate("a.pem").checkIP(host)).toBeDefined();
  expect(certificate("alice.pem").subject).toBe("CN=alice");

  const modes = readdirSync(at(".")).map(
    (name) => `${name} ${(statSync(at(name)).mode & 0o777).toString(8)}`,
  );
  expect(modes.filter((each) => /\.key /.test(each) !== each.endsWith(" 600"))).toEqual([]);
  expect(statSync(at(".")).mode & 0o777).toBe(0o700);
  // No temporary file is left.
  expect(readdirSync(at(".")).filter((name) => !/^\w+\.(?:pem|key)$/.test(name))).toEqual([]);

  const { code, certificates } = await shown();
  expect([code, certificates.map(({ owner, state }) => `${owner}: ${state}`)]).toEqual([
    0,
    [
      expect.stringMatching(/^authority .*: ok$/),
      "member a of prod: ok",
      "core-user alice: ok",
      "member b of prod: ok",
      "client of prod: ok",
      "observer of prod: ok",
      "core-peer p1: ok",
      "core-server s1: ok",
    ],
  ]);
});

test("nothing is overwritten, and what cannot be is refused with a stable code", async () => {
  expect(await refusal("client", "pki")).toMatchObject({ code: "CERT_NO_AUTHORITY", exitCode: 2 });
  await must("authority", "pki");
  await must("client", "pki");
  const before = readdirSync(at(".")).map((name) => [name, read(name)]);
  const refused: [string, string[]][] = [
    ["CERT_EXISTS", ["authority", "pki"]],
    ["CERT_EXISTS", ["client", "pki"]],
    ["CERT_EXISTS", ["member", "pki", "client"]],
    ["CERT_NAME", ["member", "pki", "ca"]],
    ["CERT_NAME", ["member", "pki", "a", "--cluster", "other"]],
    ["CERT_NAME", ["core-peer", "pki", "s1"]],
    ["CERT_STEP", ["rotate", "pki", "switch"]],
    ["CERT_STEP", ["rotate", "pki", "finish"]],
    ["CERT_NO_AUTHORITY", ["member", "pki", "long", "--days", "4000"]],
    ["CERT_UNREADABLE", ["show", "pki/client.key"]],
    ["CERT_UNREADABLE", ["show", "nowhere"]],
    ["CERT_UNREADABLE", ["rotate", "pki/client.key", "trust"]],
  ];
  for (const [code, words] of refused.slice(0, -1))
    expect([words, (await refusal(...words)).code]).toEqual([words, code]);
  // A file without a cluster key causes the same message as everywhere.
  expect(await refusal(...refused.at(-1)![1])).toMatchObject({ code: "INVALID_CONFIG" });
  expect(readdirSync(at(".")).map((name) => [name, read(name)])).toEqual(before);

  rmSync(at("client.pem"));
  expect((await refusal("client", "pki")).message).toMatch(/client\.key exists without a certificate/);

  rmSync(at("ca.key"));
  expect(await refusal("member", "pki", "a")).toMatchObject({ code: "CERT_NO_AUTHORITY" });
  copyFileSync(at("client.key"), at("ca.key"));
  expect((await refusal("member", "pki", "a")).message).toMatch(/ca\.key is not the key of/);
});

test("the command makes an authority; without openssl it says so, and leaves nothing", async () => {
  const words = ["cert", "authority", "pki", "--json"];
  const env = { ...process.env, PATH: folder };
  const { code, stdout, stderr } = await leasehold(words, { cwd: folder, env }).finished;
  expect([code, stdout]).toEqual([1, ""]);
  expect(JSON.parse(stderr)).toMatchObject({
    code: "CERT_OPENSSL",
    message: expect.stringMatching(/openssl.* is not installed/),
  });
  expect(readdirSync(at("."))).toEqual([]);
  expect(await leasehold(words, { cwd: folder }).finished).toMatchObject({ code: 0, stderr: "" });
  expect(readdirSync(at("."))).toEqual(["ca.key", "ca.pem"]);
});

describe("renewal", () => {
  test("makes the same certificate anew, with a new key, if it is due", async () => {
    await must("authority", "pki", "--cluster", "a b");
    await must("member", "pki", "a", "--host", "::1", "--host", "h.example.com", "--days", "20");
    await must("core-user", "pki", "alice");
    const [former, formerKey, alice] = [certificate("a.pem"), read("a.key"), read("alice.pem")];
    expect((await shown()).certificates.map(({ state }) => state)).toEqual(["ok", "expires", "ok"]);
    expect((await shown()).code).toBe(78);
    await must("renew", "pki");
    const renewed = certificate("a.pem");
    for (const part of ["subject", "subjectAltName", "issuer"] as const)
      expect(renewed[part]).toBe(former[part]);
    expect(renewed.keyUsage).toEqual(former.keyUsage);
    expect([read("a.key") === formerKey, read("alice.pem") === alice]).toEqual([false, true]);
    expect((await shown()).code).toBe(0);
    expect((await cert("renew", "pki")).stdout).toBe("no certificate is due");
    await must("renew", "pki", "--all");
    expect(read("alice.pem")).not.toBe(alice);
  });

  test("takes over an authority and certificates that openssl has made, but not what it cannot make again", async () => {
    const authority = new Authority();
    await must("authority", "pki");
    copyFileSync(authority.caFile, at("ca.pem"));
    copyFileSync(join(authority.folder, "ca.key"), at("ca.key"));
    const { cert: made, key } = authority.for("member/a", "prod");
    copyFileSync(made, at("a.pem"));
    copyFileSync(key, at("a.key"));
    await must("renew", "pki", "--all", "--days", "20");
    // The authority itself does not satisfy the strict check.
    expect(verified("a.pem", "sslserver", "ca.pem", false)).toBe("OK");
    expect(proofOfCertificate(certificate("a.pem"))).toMatchObject({ memberId: "a", cluster: "prod" });
    copyFileSync(authority.issue(["subjectAltName = email:a@example.com"]).cert, at("odd.pem"));
    expect(await refusal("renew", "pki", "--all")).toMatchObject({ code: "CERT_UNREADABLE" });
    authority.remove();
  });
});

test("show finds certificates that would fail", async () => {
  await must("authority", "pki");
  for (const name of ["a", "b", "c"]) await must("client", "pki", name);
  const stranger = new Authority();
  copyFileSync(stranger.for("client").cert, at("d.pem"));
  copyFileSync(stranger.for("client", "x", { fromDays: -9, toDays: -1 }).cert, at("e.pem"));
  stranger.remove();
  chmodSync(at("a.key"), 0o644);
  // A service can read the file because of its group.
  chmodSync(at("c.key"), 0o640);
  copyFileSync(at("c.key"), at("b.key"));
  const { code, certificates } = await shown();
  expect(code).toBe(78);
  expect(certificates.slice(1).map(({ state, problem }) => [state, problem])).toEqual([
    ["unfit", expect.stringMatching(/everybody can read .*a\.key/)],
    ["unfit", expect.stringMatching(/b\.key is another's key/)],
    ["ok", undefined],
    ["unfit", "another authority signed it"],
    ["expired", "another authority signed it"],
  ]);
});

test("an authority is rotated: at each step the files of the one before it are good", async () => {
  await must("authority", "pki");
  await must("member", "pki", "a");
  const [first, formerLeaf] = [read("ca.pem"), read("a.pem")];
  writeFileSync(at("former.crt"), formerLeaf);
  writeFileSync(at("first.crt"), first);

  await must("rotate", "pki", "trust");
  expect(read("ca.pem").startsWith(first)).toBe(true);
  expect(read("a.pem")).toBe(formerLeaf);
  expect(verified("a.pem", "sslclient")).toBe("OK");
  // The former authority issues certificates until it is replaced.
  await must("client", "pki", "meanwhile");
  expect(verified("meanwhile.pem", "sslclient", "first.crt")).toBe("OK");
  writeFileSync(at("trust.crt"), read("ca.pem"));
  expect(await refusal("rotate", "pki", "trust")).toMatchObject({ code: "CERT_STEP" });
  expect(await refusal("rotate", "pki", "finish")).toMatchObject({ code: "CERT_STEP" });

  await must("rotate", "pki", "switch");
  for (const name of ["a.pem", "meanwhile.pem"]) expect(verified(name, "sslclient", "trust.crt")).toBe("OK");
  expect(verified("a.pem", "sslclient", "first.crt")).not.toBe("OK");
  expect(verified("former.crt", "sslclient")).toBe("OK");
  expect((await shown()).code).toBe(0);
  // While a certificate of the former authority is left, the last step is refused; the second step renews it.
  writeFileSync(at("late.pem"), formerLeaf);
  expect((await refusal("rotate", "pki", "finish")).message).toMatch(/late\.pem .*next step is switch/);
  await must("rotate", "pki", "switch");

  await must("rotate", "pki", "finish");
  expect(read("ca.pem").match(/BEGIN/g)).toHaveLength(1);
  for (const name of ["a.pem", "late.pem"]) expect(verified(name, "sslclient")).toBe("OK");
  expect(verified("former.crt", "sslclient")).not.toBe("OK");
  expect(readdirSync(at(".")).filter((name) => name.startsWith("ca-"))).toEqual([]);
  await must("client", "pki", "after");
  expect(verified("after.pem", "sslclient")).toBe("OK");
});

test("the second step of a rotation goes on where it was interrupted", async () => {
  await must("authority", "pki");
  await must("client", "pki");
  await must("rotate", "pki", "trust");
  const states = ["ca.pem", "ca-next.pem", "ca-next.key"].map((name) => [name, read(name)] as const);
  const [former, next] = [read("ca.pem").slice(0, -read("ca-next.pem").length), read("ca-next.pem")];
  // The step's files, in the order in which it writes them.
  const interrupted: (() => void)[] = [
    () => writeFileSync(at("ca-old.pem"), former),
    () => copyFileSync(at("ca-next.key"), at("ca.key")),
    () => writeFileSync(at("ca.pem"), next + former),
    () => rmSync(at("ca-next.key")),
  ];
  for (let done = 1; done <= interrupted.length; done += 1) {
    for (const [name, text] of states) writeFileSync(at(name), text);
    for (const step of interrupted.slice(0, done)) step();
    for (const other of ["trust", "finish"])
      expect(await refusal("rotate", "pki", other)).toMatchObject({
        code: "CERT_STEP",
        message: expect.stringMatching(/next step is switch/),
      });
    await must("rotate", "pki", "switch");
    expect([done, read("ca.pem") === next + former, read("ca-old.pem") === former]).toEqual([
      done,
      true,
      true,
    ]);
    expect(existsSync(at("ca-next.pem"))).toBe(false);
    expect(verified("client.pem", "sslclient", "ca-old.pem")).not.toBe("OK");
    expect(verified("client.pem", "sslclient")).toBe("OK");
  }
});

test("the next authority's key is not used for another's certificate", async () => {
  await must("authority", "pki");
  await must("rotate", "pki", "trust");
  const key = read("ca.key");
  // The state that two concurrent first steps leave.
  copyFileSync(at("ca.key"), at("ca-next.key"));
  expect(await refusal("rotate", "pki", "switch")).toMatchObject({ code: "CERT_NO_AUTHORITY" });
  expect(read("ca.key")).toBe(key);
  await must("client", "pki", "still");
});

test("a new key stays where a link has its file, and its service can read it", async () => {
  const [file, path] = [join(folder, "of-service", "cluster.key"), join(folder, "link.key")];
  mkdirSync(join(folder, "of-service"));
  await must("key", file);
  const group = process.getuid?.() === 0 ? 4_321 : statSync(file).gid;
  chownSync(file, statSync(file).uid, group);
  chmodSync(file, 0o640);
  symlinkSync(file, path);
  await must("rotate", path, "trust");
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
  const { gid, mode } = statSync(file);
  expect([readFileSync(file, "utf8").match(/# next/g)?.length, gid, mode & 0o777]).toEqual([1, group, 0o640]);
});

test("one command changes a folder at a time, and others are refused", async () => {
  await must("authority", "pki");
  await must("member", "pki", "a", "--host", "localhost");
  await must("key", "pki/cluster.key");
  const lock = await DirectoryLock.take(at("."), ".cert-lock");
  const before = readdirSync(at(".")).map((name) => [name, statSync(at(name)).mtimeMs]);
  const changes = [
    ["renew", "pki", "--all"],
    ["rotate", "pki", "trust"],
    ["rotate", "pki/cluster.key", "trust"],
    ["client", "pki"],
    ["key", "pki/other.key"],
  ];
  for (const words of changes) expect(await refusal(...words)).toMatchObject({ code: "DATA_IN_USE" });
  expect(readdirSync(at(".")).map((name) => [name, statSync(at(name)).mtimeMs])).toEqual(before);
  await lock.release();
  await must("renew", "pki", "--all");

  const renewal = () => leasehold(["cert", "renew", join(folder, "pki"), "--all"]).finished;
  const codes = (await Promise.all([renewal(), renewal(), renewal()])).map(({ code }) => code);
  expect(codes).toContain(0);
  expect((await shown()).code).toBe(0);
});

test("a renewal that is killed at any moment leaves pairs that fit, or that the next one renews", async () => {
  await must("authority", "pki");
  await must("member", "pki", "a", "--host", "localhost");
  const states = new Set<string>();
  for (let tries = 0; tries < 6; tries += 1) {
    const renewal = leasehold(["cert", "renew", join(folder, "pki"), "--all"]);
    const key = read("a.key");
    // The moment is when the key has been replaced, or a random one.
    const untilMs = Date.now() + 1_500 * Math.random();
    while (read("a.key") === key && Date.now() < (tries % 2 === 0 ? Infinity : untilMs)) await sleep(1);
    renewal.process.kill("SIGKILL");
    await renewal.finished;
    states.add((await shown()).certificates.map(({ state }) => state).join(" "));
    await must("renew", "pki");
    expect((await shown()).code).toBe(0);
    expect(readdirSync(at("."))).toEqual(["a.key", "a.pem", "ca.key", "ca.pem"]);
  }
  expect([...states].filter((each) => !["ok ok", "ok unfit"].includes(each))).toEqual([]);

  // The state after a renewal was killed between the two files.
  copyFileSync(at("ca.key"), at("a.key"));
  expect((await shown()).certificates[1]).toMatchObject({ state: "unfit" });
  await must("renew", "pki");
  expect((await shown()).code).toBe(0);
});

test("a private key is replaced only once its certificate is on the disk", async () => {
  const place = () => Promise.reject(new Error("the key was placed"));
  const nowhere = join(folder, "missing", "a.pem");
  await expect(replaceFile(nowhere, "", 0o644, place)).rejects.toMatchObject({ code: "ENOENT" });
  await expect(createFile(nowhere, "", 0o644, place)).rejects.toMatchObject({ code: "ENOENT" });
  const path = join(folder, "a.pem");
  await expect(createFile(path, "", 0o644, place)).rejects.toThrow("the key was placed");
  expect(readdirSync(folder)).toEqual([]);
});

test("a certificate that openssl wrote in part replaces nothing", async () => {
  await must("authority", "pki");
  await must("client", "pki");
  const pair = [read("client.pem"), read("client.key")];
  // Simulates a full disk.
  writeFileSync(join(folder, "openssl"), "#!/bin/sh\necho -----BEGIN > own.pem\n", { mode: 0o755 });
  vi.stubEnv("PATH", `${folder}:${process.env["PATH"]}`);
  const refused = await refusal("renew", "pki", "--all").finally(() => vi.unstubAllEnvs());
  expect(refused).toMatchObject({ code: "CERT_OPENSSL" });
  expect([read("client.pem"), read("client.key")]).toEqual(pair);
});
