import { type Socket, connect as connectTcp } from "node:net";
import { type TLSSocket, connect as connectTls } from "node:tls";
import type { TlsFiles } from "../common/config.js";
import { minVersion, readTls } from "../common/tls.js";
import type { ListenUrl } from "../common/urls.js";

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
