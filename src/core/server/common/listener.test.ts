import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTcp } from "node:net";
import { connect } from "node:tls";
import { expect, test, vi } from "vitest";
import { Authority } from "../../../../test/support/pki.js";
import { type Comers, Listener } from "./listener.js";
import { renewMs } from "./tls.js";

const comers: Comers = {
  admit: () => true,
  accepted: (socket) => void socket.on("error", () => undefined).end(),
  failed: () => undefined,
};

test("a certificate that is renewed is shown to who comes afterwards, and one that is half written is not", async () => {
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
  const listener = await Listener.open(url, files, { handshakeMs: 5_000 }, comers);
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

test("a handshake that does not end is ended, also if something comes all the time", async () => {
  const authority = new Authority();
  const { cert, key } = authority.issue([]);
  const files = { certFile: cert, keyFile: key, trustedCaFile: undefined, clientCertAuth: false };
  const failed: string[] = [];
  const url = { host: "127.0.0.1", port: 0, isTls: true };
  const listener = await Listener.open(
    url,
    files,
    { handshakeMs: 300 },
    { ...comers, failed: (error) => void failed.push(error.message) },
  );
  const slow = connectTcp(listener.port, "127.0.0.1");
  // The beginning of a record, and its bytes one after the other.
  slow.on("error", () => undefined).write(Buffer.from([0x16, 0x03, 0x01, 0x3f, 0xff, 0x01]));
  const dripping = setInterval(() => slow.write("a"), 50);
  await new Promise((resolve) => slow.once("close", resolve));
  clearInterval(dripping);
  expect(failed).toEqual([expect.stringMatching(/handshake timeout/i)]);
  listener.close();
  authority.remove();
});
