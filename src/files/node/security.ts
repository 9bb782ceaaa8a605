import {
  connect as connectPlain,
  createServer as createPlainServer,
  type Server,
  type Socket,
} from "node:net";
import {
  type ConnectionOptions,
  connect as connectTls,
  createServer as createTlsServer,
  type TlsOptions,
} from "node:tls";
import { LeaseholdError } from "../../lease/errors.js";
import { type Address, isLoopback } from "../../runtime/address.js";
import type { TlsFiles } from "../../runtime/options.js";
import { textOf } from "../../runtime/pem.js";
import { certificateTls, preSharedKey, pskTls } from "../../runtime/tls.js";

/** How nodes of files prove to each other that they belong together. */
export interface FilesSecurity {
  /** The cluster key: 64 to 128 hexadecimal digits, the same at all nodes. */
  readonly key?: string | undefined;
  /** A file that holds what `key` would. */
  readonly keyFile?: string | undefined;
  /** Certificates: each node has one of the same authority, and whoever has one is believed. */
  readonly tls?: TlsFiles | undefined;
}

const pskIdentity = "files";

/** Whoever connects proves who it is within this time, ms. */
const handshakeTimeout = 5_000;

/** Both ends of connections between nodes. */
export interface Secured {
  listener(onConnection: (socket: Socket) => void): Server;
  dial(address: Address, signal: AbortSignal): Promise<Socket>;
}

/** @throws LeaseholdError `INVALID_CONFIG`. */
export async function secured(
  { key, keyFile, tls }: FilesSecurity,
  addresses: readonly Address[],
): Promise<Secured> {
  if ([key, keyFile, tls].filter((each) => each !== undefined).length > 1)
    throw new LeaseholdError("INVALID_CONFIG", "of `key`, `keyFile` and `tls` only one can be used");
  if (tls !== undefined) return overTls(await certificates(tls));
  if (key !== undefined) return overTls(sharedKey(key, "key"));
  if (keyFile !== undefined) return overTls(sharedKey(await textOf(keyFile), keyFile));
  const open = addresses.find(({ host }) => !isLoopback(host));
  if (open !== undefined)
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `${open.host} can be reached from other machines: nodes of files need \`key\`, \`keyFile\` or \`tls\` there`,
    );
  return {
    listener: (onConnection) => createPlainServer(onConnection),
    dial: ({ host, port }, signal) => whenReady(connectPlain({ host, port }), "connect", signal),
  };
}

function overTls({ server, client }: { server: TlsOptions; client: ConnectionOptions }): Secured {
  return {
    listener: (onConnection) => createTlsServer({ ...server, handshakeTimeout }, onConnection),
    dial: ({ host, port }, signal) =>
      whenReady(connectTls({ ...client, host, port }), "secureConnect", signal),
  };
}

function sharedKey(text: string, source: string): { server: TlsOptions; client: ConnectionOptions } {
  const psk = preSharedKey(text.trim(), source);
  return {
    server: { ...pskTls, pskCallback: (_socket, identity) => (identity === pskIdentity ? psk : null) },
    // Both sides prove the key in the handshake, so no name is to be checked.
    client: {
      ...pskTls,
      pskCallback: () => ({ psk, identity: pskIdentity }),
      checkServerIdentity: () => undefined,
    },
  };
}

async function certificates(files: TlsFiles): Promise<{ server: TlsOptions; client: ConnectionOptions }> {
  const [ca, cert, key] = await Promise.all([textOf(files.ca), textOf(files.cert), textOf(files.key)]);
  const both = { ...certificateTls, ca, cert, key };
  return {
    server: { ...both, requestCert: true, rejectUnauthorized: true },
    client: { ...both, rejectUnauthorized: true, checkServerIdentity: () => undefined },
  };
}

function whenReady(socket: Socket, event: "connect" | "secureConnect", signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => {
      socket.destroy();
      reject(new LeaseholdError("UNREACHABLE", "no connection in time"));
    };
    socket.once("error", reject);
    signal.addEventListener("abort", giveUp, { once: true });
    socket.once(event, () => {
      signal.removeEventListener("abort", giveUp);
      socket.off("error", reject);
      resolve(socket);
    });
  });
}
