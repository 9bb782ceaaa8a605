import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { LeaseholdError } from "../../../lease/errors.js";
import { formatAddress, isLoopback, parseAddress } from "../../../runtime/address.js";

/** Connections that the kernel queues while the event loop is busy. */
const BACKLOG = 511;

/**
 * Refuses an address that other machines reach.
 *
 * @throws LeaseholdError `INVALID_URL`, `INVALID_CONFIG`.
 */
export function checkExposure(address: string): void {
  if (isLoopback(parseAddress(address).host)) return;
  throw new LeaseholdError(
    "INVALID_CONFIG",
    `${address} can be reached from other machines, and plain TCP neither encrypts nor checks who connects: ` +
      "anybody could take part. Give it `tls` or a `key`, listen on 127.0.0.1 or [::1], or allow it with `insecure: true`",
  );
}

/** Accepts connections at one address. */
export class Listener {
  readonly #server: Server;

  constructor(accepted: (socket: Socket, address: string) => void) {
    this.#server = createServer((socket) => {
      accepted(socket, formatAddress(socket.remoteAddress ?? "unknown", socket.remotePort ?? 0));
    });
  }

  /**
   * Resolves to the actual address. `openly` allows an address that other machines reach.
   *
   * @throws LeaseholdError `INVALID_URL`, `INVALID_CONFIG`.
   */
  async listen(address: string, openly: boolean): Promise<string> {
    const { host, port } = parseAddress(address);
    if (!openly) checkExposure(address);
    const server = this.#server;
    await new Promise<void>((resolve, reject) => {
      const failed = (error: Error): void => {
        reject(
          new LeaseholdError("INVALID_CONFIG", `cannot listen on ${address}: ${error.message}`, {
            cause: error,
          }),
        );
      };
      server.once("error", failed);
      server.listen({ host, port, backlog: BACKLOG }, () => {
        server.off("error", failed);
        // Out of file descriptors, for example: one connection is lost, which its peer notices, and the
        // server continues.
        server.on("error", () => {});
        resolve();
      });
    });
    return formatAddress(host, (server.address() as AddressInfo).port);
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
    });
  }
}
