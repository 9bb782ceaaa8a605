import type { Socket } from "node:net";

type Counted = Pick<Socket, "bytesRead" | "bytesWritten">;

/** Bytes over sockets, including closed ones. */
export class Traffic {
  readonly #open = new Set<Counted>();
  #closed = { received: 0, sent: 0 };

  follow(socket: Counted & { once(event: "close", listener: () => void): unknown }): void {
    this.#open.add(socket);
    socket.once("close", () => {
      if (this.#open.delete(socket)) this.#closed = added(this.#closed, socket);
    });
  }

  get bytes(): { readonly received: number; readonly sent: number } {
    return [...this.#open].reduce(added, this.#closed);
  }
}

function added(
  { received, sent }: { received: number; sent: number },
  { bytesRead, bytesWritten }: Counted,
): { received: number; sent: number } {
  return { received: received + bytesRead, sent: sent + bytesWritten };
}
