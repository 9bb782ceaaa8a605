import { expect, test } from "vitest";
import { Counters } from "./metrics/counters.js";
import { PeerEvents } from "./peer-events.js";
import { Reports } from "./reports.js";

test("reports of failed handshakes are limited per address: one stranger hides no other", () => {
  const lines: string[] = [];
  const write = (text: string): void => void lines.push(text);
  const logger = { debug: write, info: write, warn: write, error: write };
  const reports = new Reports(logger, new Counters(), () => []);
  const unused = undefined as never;
  const events = new PeerEvents({ id: 1n, path: "" }, unused, unused, reports, () => [], unused);
  for (const address of ["10.0.0.1", "10.0.0.1", "fe80::1", "fe80::2"]) events.refused(address, "bad");
  expect(lines.map((line) => line.split(" was refused")[0])).toEqual(["10.0.0.1", "fe80::1", "fe80::2"]);
});
