import type { Socket } from "node:net";

const local = new WeakMap<Socket, string>();
let count = 0;

/** Where a connection comes from, for telling it from others: those of Unix sockets are counted. */
export function addressOf(socket: Socket): string {
  const { remoteAddress, remotePort } = socket;
  if (remoteAddress !== undefined) return `${remoteAddress}:${remotePort ?? 0}`;
  let found = local.get(socket);
  if (found === undefined) local.set(socket, (found = `local:${(count += 1)}`));
  return found;
}

/** Without the port: who opens many connections is one client all the same. */
export function hostOf(address: string): string {
  return address.replace(/:\d+$/, "");
}
