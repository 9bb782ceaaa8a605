import { fitLabel, labelOf } from "../../runtime/participant.js";
import { hostname } from "node:os";
import { expect, test } from "vitest";
import { Labels } from "./labels.js";
import type { Link } from "./transport/link.js";

const link = (owner: string) => ({ owner }) as Link;

test("a label shows where its holder runs, and fits its bound", () => {
  expect(labelOf(undefined)).toBe(`${hostname()} pid ${process.pid}`);
  expect(labelOf("nightly\n")).toBe(`${hostname()} pid ${process.pid}: nightly `);
  expect(Buffer.byteLength(fitLabel("é".repeat(300)))).toBe(256);
  expect(fitLabel(`${"x".repeat(255)}é`)).toBe("x".repeat(255));
});

test("labels are kept for a while after their connection, and no longer", () => {
  const labels = new Labels(1_000);
  const [old, renewed] = [link("p.1"), link("p.1")];
  expect(labels.set(old, "one")).toBe(true);
  labels.set(renewed, "two");
  labels.gone(old, 0);
  labels.sweep(5_000);
  expect(labels.of("p.1")).toBe("two");
  labels.gone(renewed, 5_000);
  labels.sweep(6_000);
  expect(labels.of("p.1")).toBe("two");
  labels.sweep(6_001);
  expect(labels.of("p.1")).toBeUndefined();
});

test("labels are bounded in size and number", () => {
  const labels = new Labels(1_000);
  expect(labels.set(link("p.1"), "x".repeat(257))).toBe(false);
  expect(labels.set(link("p.1"), 7)).toBe(false);
  expect(labels.set(link("p.1"), "a\u001b[2J")).toBe(false);
  for (let number = 0; number < 20_000; number += 1) labels.set(link(`p.${number}`), "x");
  expect(labels.set(link("q.1"), "x")).toBe(false);
  expect(labels.set(link("p.1"), "y")).toBe(true);
});
