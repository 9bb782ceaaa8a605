import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTcp } from "node:net";
import { connect } from "node:tls";
import { expect, test, vi } from "vitest";
import { Authority } from "../../../../../test/support/pki.js";
import { type ConnectionEvents, Listener } from "./listen.js";
import { renewMs } from "./tls/tls.js";

const events: ConnectionEvents = {
  admit: () => true,
  accepted: (socket) => void socket.on("error", () => undefined).end(),
  failed: () => undefined,
};

test("later connections are shown a renewed certificate, but not a half-written one", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const authority = new Authority();
  const folder = mkdtempSync(join(tmpdir(), "lh-renewed-"));
  const tls = { certFile: join(folder, "cert"), keyFile: join(folder, "key"), trustedCaFile: undefined };
  const take = (issued: { cert: unknown; key: unknown }) => {
    copyFileSync(String(issued.cert), tls.certFile);
    copyFileSync(String(issued.key), tls.keyFile);
  };
  const [first, second] = [authority.issue([]), authority.issue([])];
  take(first);
  const url = { host: "127.0.0.1", port: 0, isTls: true };
  const files = { ...tls, clientCertAuth: false };
  const listener = await Listener.open(url, files, { handshakeMs: 5_000 }, events);
  const shown = () =>
    new Promise<string>((resolve, reject) => {
      const { port } = listener;
      const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().serialNumber);
        socket.destroy();
      });
      socket.on("error", reject);
    });
  try {
    const before = await shown();
    copyFileSync(String(second.cert), tls.certFile);
    vi.advanceTimersByTime(renewMs);
    expect(await shown()).toBe(before);
    take(second);
    vi.advanceTimersByTime(renewMs);
    expect(await shown()).not.toBe(before);
  } finally {
    vi.useRealTimers();
    listener.close();
    rmSync(folder, { recursive: true });
    authority.remove();
  }
});

test("a new revocation list takes effect regardless of the other files; a half-written one does not", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const authority = new Authority();
  const usage = ["subjectAltName = IP:127.0.0.1", "extendedKeyUsage = serverAuth, clientAuth"];
  const [own, one, two] = [authority.issue(usage), authority.issue(usage), authority.issue(usage)];
  const crlFile = join(authority.folder, "list.pem");
  copyFileSync(authority.revoke(one), crlFile);
  const certFile = join(authority.folder, "own.pem");
  copyFileSync(own.cert, certFile);
  const files = { certFile, keyFile: own.key, trustedCaFile: own.ca, clientCertAuth: true, crlFile };
  let said = "";
  const told: string[] = [];
  const listener = await Listener.open(
    { host: "127.0.0.1", port: 0, isTls: true },
    files,
    { handshakeMs: 5_000 },
    {
      ...events,
      accepted: (socket, admitted) => {
        said = "accepted";
        events.accepted(socket, admitted);
      },
      failed: (error) => (said = error.message),
      unusable: (text) => void told.push(text),
    },
  );
  const ask = async ({ cert, key }: typeof own) => {
    said = "";
    const options = { cert: readFileSync(cert), key: readFileSync(key), rejectUnauthorized: false };
    const socket = connect({ host: "127.0.0.1", port: listener.port, ...options });
    socket.on("error", () => undefined).resume();
    await new Promise((resolve) => socket.once("close", resolve));
    return said;
  };
  try {
    expect(await ask(one)).toMatch(/was revoked/);
    expect(await ask(two)).toBe("accepted");
    const both = readFileSync(authority.revoke(two));
    // A half-written list names fewer certificates than the one before.
    for (const text of [both.subarray(0, both.length / 2), Buffer.alloc(0), Buffer.from("nothing")]) {
      writeFileSync(crlFile, text);
      vi.advanceTimersByTime(renewMs);
      expect(await ask(one)).toMatch(/was revoked/);
    }
    // The certificate is being renewed, and does not match its key yet.
    copyFileSync(two.cert, certFile);
    writeFileSync(crlFile, both);
    vi.advanceTimersByTime(renewMs);
    expect(await ask(two)).toMatch(/was revoked/);
    expect(await ask(own)).toBe("accepted");
    const list = /list.pem is no list .*: the former list stays in use$/;
    const certificate = /own.pem and its key or authority do not match/;
    expect(told).toEqual(
      [list, list, list, certificate].map((text) => expect.stringMatching(text) as string),
    );
  } finally {
    vi.useRealTimers();
    listener.close();
    authority.remove();
  }
});

test("a server does not start with an unreadable list", async () => {
  const authority = new Authority();
  const { ca, cert, key } = authority.issue([]);
  const crlFile = join(authority.folder, "list.pem");
  writeFileSync(crlFile, "-----BEGIN X509 CRL-----\nMIIB");
  const files = { certFile: cert, keyFile: key, trustedCaFile: ca, clientCertAuth: false, crlFile };
  const opening = Listener.open(
    { host: "127.0.0.1", port: 0, isTls: true },
    files,
    { handshakeMs: 1 },
    events,
  );
  await expect(opening).rejects.toMatchObject({ code: "INVALID_CONFIG" });
  authority.remove();
});

test("an endless handshake times out, even if bytes keep arriving", async () => {
  const authority = new Authority();
  const { cert, key } = authority.issue([]);
  const files = { certFile: cert, keyFile: key, trustedCaFile: undefined, clientCertAuth: false };
  const failed: string[] = [];
  const url = { host: "127.0.0.1", port: 0, isTls: true };
  const listener = await Listener.open(
    url,
    files,
    { handshakeMs: 300 },
    { ...events, failed: (error) => void failed.push(error.message) },
  );
  const slow = connectTcp(listener.port, "127.0.0.1");
  // The beginning of a record, with its bytes sent one by one.
  slow.on("error", () => undefined).write(Buffer.from([0x16, 0x03, 0x01, 0x3f, 0xff, 0x01]));
  const dripping = setInterval(() => slow.write("a"), 50);
  await new Promise((resolve) => slow.once("close", resolve));
  clearInterval(dripping);
  expect(failed).toEqual([expect.stringMatching(/handshake timeout/i)]);
  listener.close();
  authority.remove();
});

test("over TLS on a Unix socket, each connection is reported with its admitted socket", async () => {
  const authority = new Authority();
  const { cert, key } = authority.issue([]);
  const folder = mkdtempSync(join(tmpdir(), "lh-unix-"));
  const path = join(folder, "s");
  const files = { certFile: cert, keyFile: key, trustedCaFile: undefined, clientCertAuth: false };
  const admitted: unknown[] = [];
  const accepted: unknown[] = [];
  const noting: ConnectionEvents = {
    admit: (socket) => admitted.push(socket) > 0,
    accepted: (socket, below) => {
      accepted.push(below);
      socket.on("error", () => undefined);
    },
    failed: () => undefined,
  };
  const url = { host: "localhost", port: 0, isTls: true, path };
  const listener = await Listener.open(url, files, { handshakeMs: 5_000 }, noting);
  const raw = [];
  for (let count = 1; count <= 3; count += 1) {
    raw.push(connectTcp(path).on("error", () => undefined));
    await expect.poll(() => admitted.length).toBe(count);
  }
  // The handshakes end in a different order than they began.
  for (const [done, index] of [2, 0, 1].entries()) {
    connect({ socket: raw[index]!, rejectUnauthorized: false }).on("error", () => undefined);
    await expect.poll(() => accepted.length).toBe(done + 1);
  }
  expect(accepted.map((below) => admitted.indexOf(below))).toEqual([2, 0, 1]);
  for (const socket of raw) socket.destroy();
  listener.close();
  rmSync(folder, { recursive: true });
  authority.remove();
});
