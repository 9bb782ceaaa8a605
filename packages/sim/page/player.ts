import type { Recording } from "../src/theatre/recording.js";

/** Real time for a message of usual length, so that it can be followed. */
const slowRate = 0.04;
const fastRate = 0.7;

/** The position of playback: a time, and the last step that has happened. */
export interface Position {
  readonly atMs: number;
  readonly step: number;
}

/** The last step at or before this time. */
export function stepAt({ steps }: Recording, atMs: number): number {
  let [low, high] = [0, steps.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (steps[middle]!.atMs <= atMs) low = middle;
    else high = middle - 1;
  }
  return low;
}

export function toStep({ steps }: Recording, index: number): Position {
  const step = Math.min(steps.length - 1, Math.max(0, index));
  return { step, atMs: steps[step]?.atMs ?? 0 };
}

export function toTime(recording: Recording, atMs: number): Position {
  return { atMs, step: stepAt(recording, atMs) };
}

/** The next step, or the previous one, that changed who holds what, who is alive or who can reach whom. */
export function toMain(recording: Recording, from: number, by: 1 | -1): Position {
  const { steps } = recording;
  let at = from + by;
  while (at > 0 && at < steps.length - 1 && !steps[at]!.isMain) at += by;
  return toStep(recording, at);
}

/**
 * The time after `passedMs` of the reader's time. It passes more slowly while messages are in flight, because
 * nothing else happens.
 */
export function afterMs(recording: Recording, { atMs }: Position, passedMs: number, speed: number): number {
  const isBusy = recording.flights.some(({ sentMs, arrivesMs }) => sentMs <= atMs && atMs <= arrivesMs);
  if (isBusy) return atMs + passedMs * slowRate * speed;
  const next = recording.steps[stepAt(recording, atMs) + 1]?.atMs ?? Infinity;
  // Quiet time ends at the next step.
  return Math.min(atMs + passedMs * fastRate * speed, Math.max(next, atMs + passedMs * slowRate * speed));
}
