import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { drained } from "./drained.js";

test("a wait ends with the stream or the signal, and leaves no listener", async () => {
  let drain: () => void = () => undefined;
  const stream = { whenDrained: (listener: () => void) => void (drain = listener) };
  const gone = new AbortController();
  const listeners = () => getEventListeners(gone.signal, "abort").length;
  for (let round = 0; round < 20; round += 1) {
    const wait = drained(stream, gone.signal);
    expect(listeners()).toBe(1);
    drain();
    await wait;
    expect(listeners()).toBe(0);
  }
  const last = drained(stream, gone.signal);
  gone.abort();
  await last;
  expect(listeners()).toBe(0);
  await drained(stream, gone.signal);
});
