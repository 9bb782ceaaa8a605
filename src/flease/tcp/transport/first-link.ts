import type { World } from "../../../lease/ports.js";
import type { Link } from "./link.js";

/** How long after its start a participant waits for a connection that it needs, and how often it looks. */
const firstLinksMs = 500;
const firstLinkLookMs = 5;

/** A client is open as soon as a majority is connected: the others get a moment before they count as missing. */
export async function firstLink(
  linked: () => Link | undefined,
  isWanted: () => boolean,
  startedMono: number,
  { clock, timers }: World,
): Promise<Link | undefined> {
  while (isWanted() && linked() === undefined && clock.monotonicMs() < startedMono + firstLinksMs) {
    await new Promise<void>((resolve) => timers.after(firstLinkLookMs, resolve));
  }
  return linked();
}
