import type { Socket } from "node:net";

const local = new WeakMap<Socket, string>();
let count = 0;

/** Returns a key for the origin of a connection. Connections over Unix sockets are numbered. */
export function addressOf(socket: Socket): string {
  const { remoteAddress, remotePort } = socket;
  if (remoteAddress !== undefined) return `${remoteAddress}:${remotePort ?? 0}`;
  let found = local.get(socket);
  if (found === undefined) local.set(socket, (found = `local:${(count += 1)}`));
  return found;
}

/** Returns the address without the port: many connections from one host are one client. */
export function hostOf(address: string): string {
  return address.replace(/:\d+$/, "");
}
