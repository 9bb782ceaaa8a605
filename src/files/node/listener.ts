import type { Server, Socket } from "node:net";
import { once } from "node:events";
import { LeaseholdError } from "../../lease/errors.js";
import { type Address, formatAddress } from "../../runtime/address.js";
import type { Answerer, Asks, Kind } from "../protocol/messages.js";
import { noBytes } from "../protocol/messages.js";
import { type Frame, FrameReader, writeFrame } from "./frames.js";
import type { Secured } from "./security.js";

/** Questions of one connection that are worked at; more are not read from it before. */
const workingMax = 64;
/** Two from each other node; the rest is for those that come back before we know that they were gone. */
const connectionsMax = 256;

interface AskHead {
  readonly id: number;
  readonly kind: Kind;
  readonly ask: Asks[Kind];
}

/** Where the other nodes ask this one. */
export class Listener {
  readonly #answerer: Answerer;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(secure: Secured, answerer: Answerer) {
    this.#answerer = answerer;
    this.#server = secure.listener((socket) => this.#connected(socket));
    this.#server.maxConnections = connectionsMax;
  }

  /** @throws LeaseholdError `UNREACHABLE` if the address is taken. */
  async listen({ host, port }: Address): Promise<void> {
    this.#server.listen({ host, port });
    try {
      await once(this.#server, "listening");
    } catch (cause) {
      const why = `cannot listen on ${formatAddress(host, port)}: ${(cause as Error).message}`;
      throw new LeaseholdError("UNREACHABLE", why, { cause });
    }
    // A connection that fails harms itself only.
    this.#server.on("error", () => undefined);
    this.#server.on("tlsClientError", () => undefined);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, "close");
  }

  #connected(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    const reader = new FrameReader();
    let working = 0;
    const done = (): void => {
      working -= 1;
      if (working < workingMax) socket.resume();
    };
    socket.on("data", (chunk: Buffer) => {
      try {
        for (const frame of reader.read(chunk)) {
          working += 1;
          void this.#answer(socket, frame).finally(done);
        }
      } catch {
        socket.destroy();
      }
      if (working >= workingMax) socket.pause();
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
  }

  async #answer(socket: Socket, { head, body }: Frame): Promise<void> {
    const { id, kind, ask } = head as AskHead;
    try {
      const answered = await this.#answerer.answer(kind, ask, body);
      if (!socket.destroyed) writeFrame(socket, { id, answer: answered.answer }, answered.body);
    } catch (error) {
      const code = error instanceof LeaseholdError ? error.code : "DISK_FAILED";
      const message = error instanceof Error ? error.message : String(error);
      if (!socket.destroyed) writeFrame(socket, { id, error: { code, message } }, noBytes);
    }
  }
}
