import { readFileSync } from "node:fs";
import { createSecureServer, type Http2SecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { create } from "@bufbuild/protobuf";
import { afterAll, afterEach, expect, test } from "vitest";
import { loopbacks } from "../../../../../test/support/loopbacks.js";
import { Authority, asText } from "../../../../../test/support/pki.js";
import { KV, RangeRequestSchema } from "../gen/etcd/rpc_pb.js";
import { formatAddress } from "../../runtime/address.js";
import { grpcConnections } from "./grpc-connection.js";

/** Servers that answer every call with an empty message, over TLS with certificates on both sides. */
const authority = new Authority();
const usage = "extendedKeyUsage = serverAuth, clientAuth";
afterAll(() => authority.remove());

const servers: Http2SecureServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/**
 * Starts a server with a certificate for these names; returns its port and the server names that clients
 * sent.
 */
async function listening(names: string, host: string): Promise<{ port: number; asked: unknown[] }> {
  const { ca, cert, key } = authority.issue([`subjectAltName = ${names}`, usage]);
  const [ofAuthority, shown, secret] = [ca, cert, key].map((file) => readFileSync(String(file)));
  const server = createSecureServer({ ca: ofAuthority, cert: shown, key: secret, requestCert: true });
  servers.push(server);
  const asked: unknown[] = [];
  server.on("secureConnection", ({ servername }: TLSSocket) => asked.push(servername));
  server.on("stream", (stream) => {
    const [status, type] = [{ ":status": 200 }, { "content-type": "application/grpc" }];
    stream.respond({ ...status, ...type }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(Buffer.alloc(5));
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return { port: (server.address() as AddressInfo).port, asked };
}

/** Returns the error of a call to the server; empty if it was answered. */
async function ask(endpoint: string): Promise<string> {
  const tls = { current: asText(authority.issue([usage])), version: 0 };
  const connection = grpcConnections(tls)(endpoint);
  try {
    await connection.ask(KV.method.range, create(RangeRequestSchema), undefined, 60_000);
    return "";
  } catch (error) {
    return (error as Error).message;
  } finally {
    connection.close();
  }
}

test.each(loopbacks())("a server is dialled at %s, which is not sent as a server name", async (host) => {
  const { asked, port } = await listening(`IP:${host}`, host);
  expect(await ask(formatAddress(host, port))).toBe("");
  expect(asked).toEqual(["address.invalid"]);
});

test("a certificate without the address of a server is refused", async () => {
  const { port } = await listening("IP:127.0.0.2, DNS:localhost, DNS:address.invalid", "127.0.0.1");
  expect(await ask(`127.0.0.1:${port}`)).toMatch(/IP: 127\.0\.0\.1 is not in the cert's list/);
});

test("a server dialled by name gets it as server name, and its certificate must have it", async () => {
  const { asked, port } = await listening("DNS:localhost", "localhost");
  expect(await ask(`localhost:${port}`)).toBe("");
  expect(asked).toEqual(["localhost"]);
  const other = await listening("DNS:other.example.com", "localhost");
  expect(await ask(`localhost:${other.port}`)).toMatch(/localhost\. is not in the cert's altnames/);
});

test("the next call uses renewed certificates", async () => {
  const former = await listening("IP:127.0.0.1", "127.0.0.1");
  const stranger = new Authority();
  const tls = { current: asText(authority.issue([usage])), version: 0 };
  const connection = grpcConnections(tls)(`127.0.0.1:${former.port}`);
  const asked = () => connection.ask(KV.method.range, create(RangeRequestSchema), undefined, 60_000);
  await asked();
  await asked();
  expect(former.asked).toHaveLength(1);

  tls.current = asText(authority.issue([usage]));
  tls.version += 1;
  await asked();
  expect(former.asked).toHaveLength(2);

  tls.current = { ...tls.current, ca: readFileSync(stranger.caFile, "utf8") };
  tls.version += 1;
  await expect(asked()).rejects.toThrow(/certificate/);
  connection.close();
  stranger.remove();
});
