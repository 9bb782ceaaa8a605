import { randomUUID } from "node:crypto";

/**
 * A new marker. It begins with `d` if the server was durable when the marker was made, and with `m` if a
 * restart counts as forgetting, so that all users of the store agree on that.
 */
export function drawMarker(durable: boolean): string {
  return `${durable ? "d" : "m"}-${randomUUID()}`;
}

/**
 * Whether the store counts as durable: both its marker, which all users share, and its present settings must
 * say so. If the settings have changed, the store may already have lost data, and gets a new marker.
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
