import type { TenureEnd } from "../src/record/messages.js";

/** Durations, times and states in words. */

export function span(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 100) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function timeOfDay(atMs: number): string {
  return new Date(atMs).toLocaleTimeString(undefined, { hour12: false });
}

export const endWords: Readonly<Record<TenureEnd, string>> = {
  released: "released by its holder",
  "ran-out": "ran out: its holder did not renew it",
  "passed-on": "another holder followed",
  ended: "released, or it ran out",
};
