import { randomUUID } from "node:crypto";

/**
 * A new marker. It begins with `d` if the server was durable when it was made, so that all users of the store
 * agree on that, and with `m` where a restart counts as forgetting.
 */
export function drawMarker(durable: boolean): string {
  return `${durable ? "d" : "m"}-${randomUUID()}`;
}

/**
 * Whether the store counts as durable: its marker says so, for all users, and its settings still do. A store
 * whose settings no longer do may have forgotten already, and gets another marker.
 */
export async function agreeOnDurability(
  marker: string,
  isDurable: boolean,
  replaceBy: (next: string) => Promise<unknown>,
): Promise<boolean> {
  if (!marker.startsWith("d")) return false;
  if (!isDurable) await replaceBy(drawMarker(false));
  return isDurable;
}
