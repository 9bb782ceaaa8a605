import { networkInterfaces } from "node:os";

/** The addresses of this machine's loopback interface: some machines have no IPv6. */
export function loopbacks(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return ["127.0.0.1", ...(all.some(({ address }) => address === "::1") ? ["::1"] : [])];
}
