import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { LeaseholdError } from "leasehold/common";
import { type Address, handshakeFault, type Credentials } from "leasehold/runtime";
import { noBytes } from "../protocol/messages.js";
import { FrameReader, writeFrame } from "./frames.js";
import { authError, checkPeer, checkWelcome, hello, type Self } from "./introduction.js";

/**
 * Dials a node. When this resolves, both sides have authenticated each other and the socket is paused.
 * @throws LeaseholdError the reason for a refusal by either side; or an error of the socket.
 */
export async function dial(
  self: Self,
  credentials: Credentials | undefined,
  to: string,
  address: Address,
  signal: AbortSignal,
): Promise<Socket> {
  signal.throwIfAborted();
  let socket: Socket | undefined;
  const giveUp = (): void => {
    socket?.destroy(new LeaseholdError("UNREACHABLE", "no connection in time"));
  };
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    if (credentials === undefined) {
      socket = connect({ ...address });
      await when(socket, "connect");
    } else {
      const options = credentials.dialOptions({ role: "member", cluster: self.cluster });
      const secured = connectTls({ ...address, ...options });
      socket = secured;
      await when(secured, "secureConnect");
      checkPeer(self, to, credentials.proofOf(secured, "dialing"));
    }
    writeFrame(socket, hello(self, to), noBytes);
    checkWelcome(self, to, await firstHead(socket));
    return socket;
  } catch (error) {
    socket?.destroy();
    const fault = handshakeFault(error as Error, "dialing");
    throw fault === undefined ? error : authError(fault);
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}

async function firstHead(socket: Socket): Promise<unknown> {
  const reader = new FrameReader();
  for (;;) {
    socket.resume();
    const [frame] = reader.read(await when(socket, "data"));
    if (frame !== undefined) return frame.head;
  }
}

/** Waits for the next event with that name. Later data stays in the socket. */
function when(socket: Socket, event: "connect" | "secureConnect" | "data"): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const happened = (value: Buffer): void => {
      socket.pause();
      done();
      resolve(value);
    };
    const closed = (): void => {
      done();
      reject(new LeaseholdError("UNREACHABLE", "the connection was closed"));
    };
    const failed = (error: Error): void => {
      done();
      // Errors after the socket has been destroyed are ignored.
      socket.on("error", () => undefined);
      reject(error);
    };
    const done = (): void => {
      socket.off(event, happened);
      socket.off("error", failed);
      socket.off("close", closed);
    };
    socket.on(event, happened);
    socket.on("error", failed);
    socket.on("close", closed);
  });
}
