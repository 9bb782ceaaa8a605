import { readFileSync } from "node:fs";
import { type Server, type Socket, connect as connectTcp, createServer as createTcpServer } from "node:net";
import { type TLSSocket, connect as connectTls, createServer as createTlsServer } from "node:tls";
import { LeaseholdError } from "../../../lease/errors.js";
import type { TlsFiles } from "../config.js";
import type { ListenUrl } from "../urls.js";

const minVersion = "TLSv1.2";

/** @throws LeaseholdError `INVALID_CONFIG` */
export function readTlsFile(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new LeaseholdError("INVALID_CONFIG", `${path} cannot be read: ${(error as Error).message}`);
  }
}

/** Calls `ready` when bytes can be sent. */
export function dial(url: ListenUrl, tls: TlsFiles | undefined, ready: () => void): Socket {
  const { host, port, isTls } = url;
  if (!isTls) return connectTcp({ host, port, noDelay: true }, ready);
  const files = tls && { cert: readTlsFile(tls.certFile), key: readTlsFile(tls.keyFile), ...authority(tls) };
  // Without a certificate of our own, too: the other side says what it wants.
  return connectTls({ host, port, servername: host, minVersion, ...files }, ready).setNoDelay(
    true,
  ) as TLSSocket;
}

export function createListener(
  url: ListenUrl,
  tls: TlsFiles | undefined,
  accepted: (socket: Socket) => void,
  failed: (error: Error, socket: Socket) => void,
): Server {
  if (!url.isTls || tls === undefined) return createTcpServer({ noDelay: true }, accepted);
  const { certFile, keyFile, clientCertAuth } = tls;
  const own = { cert: readTlsFile(certFile), key: readTlsFile(keyFile), ...authority(tls) };
  const asking = { requestCert: clientCertAuth, rejectUnauthorized: clientCertAuth };
  const server = createTlsServer({ ...own, ...asking, minVersion, noDelay: true }, accepted);
  return server.on("tlsClientError", failed);
}

/** Resolves when it listens. */
export async function listen(server: Server, { host, port }: ListenUrl): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(new LeaseholdError("INVALID_CONFIG", `cannot listen on ${host}:${port}: ${error.message}`)),
    );
    server.listen({ host, port }, resolve);
  });
}

function authority({ trustedCaFile }: TlsFiles): { ca?: Buffer } {
  return trustedCaFile === undefined ? {} : { ca: readTlsFile(trustedCaFile) };
}
