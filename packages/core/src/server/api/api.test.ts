import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { freePorts } from "../../../../../test/free-ports.js";
import { Authority } from "../../../../../test/support/pki.js";
import type { CoreHost } from "../../host/host.js";
import { renewMs } from "../wire/tls/tls.js";
import { Connections } from "../accounts/connections.js";
import type { ClusterFacts } from "./calls/header.js";
import { Counters } from "../metrics/counters.js";
import { ClientApi } from "./api.js";

/** The client port with real TLS, and no core behind it. */
const server = ["subjectAltName = IP:127.0.0.1", "extendedKeyUsage = serverAuth"];
let folder: string;
let edge: ClientApi;
let port: number;
let authorities: Authority[];
const path = (name: string) => join(folder, name);

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "lh-edge-"));
  authorities = [new Authority(), new Authority("/CN=the next")];
  [port] = (await freePorts(1)) as [number];
  const away = { take: (socket: Socket) => void socket.destroy(), close: () => undefined };
  const http = () => ({ clients: away, metrics: away });
  const connections = new Connections(100, () => undefined);
  const bounds = { maxConcurrentStreams: 100, requestBytesMax: 1_000_000 };
  const host = { status: () => ({ leader: 1n }) } as CoreHost;
  edge = new ClientApi(
    host,
    {} as ClusterFacts,
    1_000,
    1_000_000,
    { byCertificate: false },
    {
      counters: new Counters(),
      audit: () => ({ over: () => undefined }),
      unusable: () => undefined,
      own: () => [],
      http,
      connections: { clients: connections, metrics: connections },
      ...bounds,
    },
  );
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
});
afterEach(async () => {
  vi.useRealTimers();
  await edge.close();
  rmSync(folder, { recursive: true });
  for (const authority of authorities) authority.remove();
});

function take({ ca, cert, key }: { ca: unknown; cert: unknown; key: unknown }): void {
  copyFileSync(String(cert), path("cert"));
  copyFileSync(String(key), path("key"));
  copyFileSync(String(ca), path("ca"));
}

const listening = (clientCertAuth: boolean) => {
  const trustedCaFile = clientCertAuth ? path("ca") : undefined;
  const tls = { certFile: path("cert"), keyFile: path("key"), trustedCaFile, clientCertAuth };
  return edge.listen([{ host: "127.0.0.1", port, isTls: true }], [], tls);
};

/**
 * Returns the certificate that the server shows to a client with this certificate; undefined if it refuses
 * the client.
 */
function shown(own?: { cert: unknown; key: unknown }): Promise<string | undefined> {
  const files = own && { cert: readFileSync(String(own.cert)), key: readFileSync(String(own.key)) };
  const options = { host: "127.0.0.1", port, rejectUnauthorized: false, ALPNProtocols: ["h2"], ...files };
  return new Promise((resolve) => {
    const socket = connect(options);
    // The HTTP/2 settings: a refused client never gets them.
    socket.once("data", () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.on("error", () => undefined).on("close", () => resolve(undefined));
  });
}

test("later clients are shown a renewed certificate, but not a half-written one", async () => {
  const [authority] = authorities;
  const [first, second] = [authority!.issue(server), authority!.issue(server)];
  take(first);
  await listening(false);
  const before = await shown();
  expect(before).toMatch(/^[0-9A-F]+$/);
  copyFileSync(String(second.cert), path("cert"));
  vi.advanceTimersByTime(renewMs);
  expect(await shown()).toBe(before);
  take(second);
  vi.advanceTimersByTime(renewMs);
  expect([undefined, before]).not.toContain(await shown());
});

test("a changed authority decides which later clients are admitted", async () => {
  const [of1, of2] = authorities.map((authority) => authority.issue(["extendedKeyUsage = clientAuth"]));
  const [now, next] = authorities.map((authority) => authority.issue(server));
  take(now!);
  await listening(true);
  expect(await shown(of1)).toBeDefined();
  expect(await shown(of2)).toBeUndefined();
  expect(await shown()).toBeUndefined();
  take(next!);
  vi.advanceTimersByTime(renewMs);
  expect(await shown(of1)).toBeUndefined();
  expect(await shown(of2)).toBeDefined();
  expect(await shown()).toBeUndefined();
});
