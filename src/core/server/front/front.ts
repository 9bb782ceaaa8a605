import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import { formatAddress } from "../../../runtime/address.js";
import { preface } from "../../http2/frames.js";
import type { TlsFiles } from "../common/config.js";
import { invalid } from "../common/invalid.js";
import { minVersion, readTls, whenRenewed } from "../common/tls.js";
import type { ListenUrl } from "../common/urls.js";

/** So long a connection may say nothing at all, or stop in the middle of its first words. */
const silenceMs = 10_000;

/** Of a connection that asks nothing for long: whether its client is still there is asked of TCP. */
const probeMs = 2 * 60_000;

/**
 * Who speaks HTTP/1.1 as well asks for JSON, health or metrics: gRPC offers HTTP/2 alone, `curl` and
 * Prometheus offer both.
 */
const chosen = ({ protocols }: { protocols: readonly string[] }) =>
  ["http/1.1", "h2"].find((each) => protocols.includes(each));

/** Every HTTP/1.1 request differs from the preface of HTTP/2 here at the latest. */
const tellingBytes = 3;

/** Who takes connections: they read them from their first byte on. */
export interface Behind {
  readonly http1: (socket: Socket) => void;
  readonly http2: (socket: Socket) => void;
}

/**
 * Listens for clients: gRPC over HTTP/2 and JSON over HTTP/1.1 come to the same port. The first bytes of a
 * connection, or what TLS agreed on, tell which it is.
 */
export class Front {
  readonly #behind: Behind;
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #renewing: (() => void)[] = [];

  constructor(behind: Behind) {
    this.#behind = behind;
  }

  /** @throws LeaseholdError `INVALID_CONFIG` if the address cannot be had */
  async listen({ host, isTls, port }: ListenUrl, tls: TlsFiles | undefined): Promise<void> {
    const server = isTls && tls !== undefined ? this.#overTls(tls) : this.#overTcp();
    this.#servers.push(server);
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error) =>
        reject(invalid(`cannot listen on ${formatAddress(host, port)}: ${error.message}`)),
      );
      server.listen({ host, port }, resolve);
    });
  }

  /** No more connections; those that have been handed on are others' to end. */
  stop(): void {
    for (const end of this.#renewing) end();
    for (const server of this.#servers) server.close();
  }

  /** Ends all connections. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #overTcp(): Server {
    return createServer({ noDelay: true }, (socket) => {
      this.#admit(socket);
      this.#hearFirstWords(socket);
    });
  }

  #overTls(tls: TlsFiles): Server {
    const { clientCertAuth } = tls;
    const asked = { requestCert: clientCertAuth, rejectUnauthorized: clientCertAuth };
    const options = { ...readTls(tls), minVersion, ...asked, ALPNCallback: chosen };
    const server = createTlsServer(options, (socket: TLSSocket) => {
      this.#admit(socket);
      socket.setNoDelay(true);
      if (socket.alpnProtocol === "h2") this.#behind.http2(socket);
      else if (socket.alpnProtocol === "http/1.1") this.#behind.http1(socket);
      else this.#hearFirstWords(socket);
    });
    this.#renewing.push(whenRenewed(tls, (content) => server.setSecureContext({ ...content, minVersion })));
    return server;
  }

  #admit(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setKeepAlive(true, probeMs);
    // Whoever goes away closes it, too.
    socket.on("error", () => undefined);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  /** HTTP/2 or HTTP/1.1. */
  #hearFirstWords(socket: Socket): void {
    const silence = setTimeout(() => socket.destroy(), silenceMs);
    const over = () => clearTimeout(silence);
    socket.once("close", over);
    let heard: Buffer = Buffer.alloc(0);
    const hear = (piece: Buffer) => {
      heard = Buffer.concat([heard, piece]);
      const begins = Math.min(heard.length, tellingBytes);
      const isHttp2 = preface.every((byte, at) => at >= begins || heard[at] === byte);
      if (isHttp2 && begins < tellingBytes) return;
      socket.off("data", hear).off("close", over);
      over();
      socket.pause();
      socket.unshift(heard);
      if (isHttp2) this.#behind.http2(socket);
      else this.#behind.http1(socket);
      socket.resume();
    };
    socket.on("data", hear);
  }
}
