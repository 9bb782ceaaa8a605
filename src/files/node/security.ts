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

/** How nodes of files prove to each other that they belong together. */
export interface FilesSecurity {
  /** The cluster key: 64 to 128 hexadecimal digits, the same at all nodes. */
  readonly key?: string | undefined;
  /** A file that holds what `key` would. */
  readonly keyFile?: string | undefined;
  /** Certificates: each node has one of the same authority, and whoever has one is believed. */
  readonly tls?: TlsFiles | undefined;
}

/** Pre-shared keys with forward secrecy (RFC 7905); `node:tls` offers them up to TLS 1.2. */
const suite = {
  ciphers: "ECDHE-PSK-CHACHA20-POLY1305",
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
} as const;
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
  const digits = text.trim();
  if (!/^(?:[0-9a-f]{2}){32,64}$/i.test(digits))
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `${source}: a key is 64 to 128 hexadecimal digits; make one with \`openssl rand -hex 32\``,
    );
  const psk = Buffer.from(digits, "hex");
  return {
    server: { ...suite, pskCallback: (_socket, identity) => (identity === pskIdentity ? psk : null) },
    // Both sides prove the key in the handshake, so no name is to be checked.
    client: {
      ...suite,
      pskCallback: () => ({ psk, identity: pskIdentity }),
      checkServerIdentity: () => undefined,
    },
  };
}

async function certificates(files: TlsFiles): Promise<{ server: TlsOptions; client: ConnectionOptions }> {
  const [ca, cert, key] = await Promise.all([textOf(files.ca), textOf(files.cert), textOf(files.key)]);
  const both = { ca, cert, key, minVersion: "TLSv1.3" } as const;
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
