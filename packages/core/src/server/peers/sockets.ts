import { type Socket, connect as connectTcp, isIP } from "node:net";
import { type TLSSocket, connect as connectTls } from "node:tls";
import { identityProblem } from "leasehold/runtime";
import type { TlsFiles } from "../wire/tls/tls-files.js";
import { objectionTo } from "../wire/tls/peer-chain.js";
import { readTls, revokedNow } from "../wire/tls/tls.js";
import type { ListenUrl } from "../wire/urls.js";

/** Calls `ready` when bytes can be sent. */
export function dial(url: ListenUrl, tls: TlsFiles | undefined, ready: () => void): Socket {
  const { host, isTls, path, port } = url;
  const place = path === undefined ? { host, port } : { path };
  if (!isTls) return connectTcp({ ...place, noDelay: true }, ready);
  const files = tls && readTls(tls);
  // Self-made certificates cannot be verified, and servers with them ask for none. Other servers show theirs
  // even if we show none: the other side decides.
  const trust = tls?.selfMadeFor === undefined ? files : { ...files, rejectUnauthorized: false };
  const revoked = tls && revokedNow(tls, files?.ca);
  // RFC 6066 excludes addresses as server names, and Node refuses them. The certificate is still checked
  // against the host.
  const identity = { servername: isIP(host) === 0 ? host : undefined, checkServerIdentity: identityProblem };
  const socket: TLSSocket = connectTls({ ...place, ...identity, ...trust }, () => {
    // We require of the other side what it requires of us, as in etcd.
    const objection = tls === undefined ? "" : objectionTo(socket, tls.allowed, revoked);
    if (objection === "") ready();
    else socket.destroy(new Error(objection));
  });
  return socket.setNoDelay(true) as TLSSocket;
}

/**
 * Calls `silent` when nothing was sent or received for this long. Input that arrived while this process was
 * suspended is read first.
 */
export function onSilence(socket: Socket, silenceMs: number, silent: () => void): void {
  socket.setTimeout(silenceMs, () => {
    const { bytesRead } = socket;
    setImmediate(() => {
      if (socket.bytesRead === bytesRead) silent();
    });
  });
}
