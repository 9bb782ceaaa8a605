import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, get } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { freePorts } from "../../../../../test/free-ports.js";
import { preface } from "../../http2/frames.js";
import { selfSigned } from "./tls/self-signed.js";
import { Connections } from "../accounts/connections.js";
import { ClientPort } from "./port.js";

let port: number;
let front: ClientPort;
let connections: Connections;
/** Reports of refused connections. */
let refused: string[];
/** Bytes received by the HTTP/2 handler. */
let heard: Buffer;

beforeEach(async () => {
  [port] = (await freePorts(1)) as [number];
  heard = Buffer.alloc(0);
  const http1 = createServer((_request, response) => response.end("one"));
  connections = new Connections(6, (text) => void refused.push(text));
  refused = [];
  const behind = {
    http1: (socket: Socket) => http1.emit("connection", socket),
    http2: (socket: Socket) => socket.on("data", (piece: Buffer) => (heard = Buffer.concat([heard, piece]))),
  };
  front = new ClientPort(behind, connections);
  await front.listen({ host: "127.0.0.1", port, isTls: false }, undefined);
});
afterEach(() => {
  vi.useRealTimers();
  front.stop();
  front.close();
});

test("HTTP/1.1 and HTTP/2 share one port, and no byte is lost", async () => {
  const one = new Promise<string>((resolve) =>
    get({ host: "127.0.0.1", port, agent: false }, (answer) =>
      answer.setEncoding("utf8").on("data", resolve),
    ),
  );
  expect(await one).toBe("one");
  const said = Buffer.concat([preface, Buffer.from("x".repeat(200_000))]);
  const socket = connect(port, "127.0.0.1");
  socket.setNoDelay(true);
  // The first bytes are sent separately.
  for (const [from, to] of [
    [0, 1],
    [1, 2],
    [2, said.length],
  ]) {
    socket.write(said.subarray(from, to));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await expect.poll(() => heard.length).toBe(said.length);
  expect(heard.equals(said)).toBe(true);
  socket.destroy();
});

test("over TLS, a client without a negotiated protocol is identified by its first bytes", async () => {
  const folder = await mkdtemp(join(tmpdir(), "lh-front-"));
  const { cert, key } = selfSigned(["127.0.0.1"], Date.now() - 60_000, Date.now() + 600_000);
  const [certFile, keyFile] = [join(folder, "cert"), join(folder, "key")];
  await writeFile(certFile, cert);
  await writeFile(keyFile, key);
  const [tlsPort] = (await freePorts(1)) as [number];
  const files = { certFile, keyFile, trustedCaFile: undefined, clientCertAuth: false };
  await front.listen({ host: "127.0.0.1", port: tlsPort, isTls: true }, files);
  const said = (words: Uint8Array | string) => {
    const socket = connectTls({ port: tlsPort, host: "127.0.0.1", rejectUnauthorized: false });
    socket.on("error", () => undefined).write(words);
    return socket;
  };
  const two = said(preface);
  await expect.poll(() => heard.equals(Buffer.from(preface))).toBe(true);
  const one = said("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const answer = new Promise<string>((resolve) =>
    one.once("data", (piece: Buffer) => resolve(String(piece))),
  );
  expect(await answer).toMatch(/^HTTP\/1.1 200/);
  for (const socket of [one, two]) socket.destroy();
  await rm(folder, { recursive: true });
});

test("the first bytes of a connection may arrive one by one", async () => {
  const socket = connect(port, "127.0.0.1");
  socket.setNoDelay(true);
  const said = new Promise<string>((resolve) =>
    socket.once("data", (piece: Buffer) => resolve(piece.toString())),
  );
  for (const byte of "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n") {
    socket.write(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await said).toMatch(/^HTTP\/1\.1 200/);
  socket.destroy();
});

test("a connection without complete first bytes is closed after ten seconds", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const sockets = ["", "PR"].map((words) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(words));
    return socket.on("error", () => undefined).resume();
  });
  const closed = sockets.map((socket) => new Promise((resolve) => socket.once("close", resolve)));
  for (const socket of sockets) await new Promise((resolve) => socket.once("connect", resolve));
  // Until the bytes have arrived.
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  await vi.advanceTimersByTimeAsync(9_000);
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, false]);
  await vi.advanceTimersByTimeAsync(1_000);
  await Promise.all(closed);
});

const closed = (socket: Socket) => new Promise((resolve) => socket.once("close", resolve));

/** Connects from one of this machine's addresses. */
const from = (localAddress: string) => {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  return socket.on("error", () => undefined).resume();
};

test("connections are bounded: one address gets half of them, and another one can still connect", async () => {
  const first = [1, 2, 3].map(() => from("127.0.0.1"));
  await expect.poll(() => connections.open).toBe(3);
  await closed(from("127.0.0.1"));
  expect(refused).toEqual([expect.stringContaining("from 127.0.0.1 was refused: 3 of 6 are open")]);
  const other = from("127.0.0.2");
  await expect.poll(() => connections.open).toBe(4);
  first[0]!.destroy();
  await expect.poll(() => connections.open).toBe(3);
  // Three places are free, and two of those are for this address.
  const again = from("127.0.0.1");
  await expect.poll(() => connections.open).toBe(4);
  expect(connections.refused).toBe(1);
  for (const socket of [...first, other, again]) socket.destroy();
  await expect.poll(() => connections.open).toBe(0);
});

test("over TLS, a connection counts from its accept to its end", async () => {
  const folder = await mkdtemp(join(tmpdir(), "lh-front-"));
  const { cert, key } = selfSigned(["127.0.0.1"], Date.now() - 60_000, Date.now() + 600_000);
  const [certFile, keyFile] = [join(folder, "cert"), join(folder, "key")];
  await writeFile(certFile, cert);
  await writeFile(keyFile, key);
  [port] = (await freePorts(1)) as [number];
  const files = { certFile, keyFile, trustedCaFile: undefined, clientCertAuth: false };
  await front.listen({ host: "127.0.0.1", port, isTls: true }, files);
  const silent = from("127.0.0.1");
  const whole = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
  whole.on("error", () => undefined);
  await new Promise((resolve) => whole.once("secureConnect", resolve));
  await expect.poll(() => connections.open).toBe(2);
  const wrong = from("127.0.0.1");
  wrong.write("GET / HTTP/1.1\r\n\r\n");
  await closed(wrong);
  for (const socket of [silent, whole]) socket.destroy();
  await expect.poll(() => connections.open).toBe(0);
  await rm(folder, { recursive: true });
});
