import { type Server, type Socket, connect as connectTcp, createServer as createTcpServer } from "node:net";
import { type TLSSocket, connect as connectTls, createServer as createTlsServer } from "node:tls";
import { invalid } from "../common/invalid.js";
import type { TlsFiles } from "../common/config.js";
import { minVersion, readTls, whenRenewed } from "../common/tls.js";
import type { ListenUrl } from "../common/urls.js";

/** A peer that has not proven its identity by then is disconnected, ms. */
const handshakeMs = 5_000;

/** Calls `ready` when bytes can be sent. */
export function dial(url: ListenUrl, tls: TlsFiles | undefined, ready: () => void): Socket {
  const { host, port, isTls } = url;
  if (!isTls) return connectTcp({ host, port, noDelay: true }, ready);
  // Such certificates cannot be verified, and servers with them ask for none.
  if (tls?.selfMadeFor !== undefined)
    return connectTls(
      { host, port, servername: host, minVersion, rejectUnauthorized: false },
      ready,
    ).setNoDelay(true) as TLSSocket;
  const files = tls && readTls(tls);
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
  const { clientCertAuth } = tls;
  const asking = { requestCert: clientCertAuth, rejectUnauthorized: clientCertAuth };
  const options = { ...readTls(tls), ...asking, minVersion, noDelay: true, handshakeTimeout: handshakeMs };
  const server = createTlsServer(options, accepted);
  server.once(
    "close",
    whenRenewed(tls, (content) => server.setSecureContext({ ...content, minVersion })),
  );
  return server.on("tlsClientError", failed);
}

/** Resolves when it listens. */
export async function listen(server: Server, { host, port }: ListenUrl): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(invalid(`cannot listen on ${host}:${port}: ${error.message}`)));
    server.listen({ host, port }, resolve);
  });
}
