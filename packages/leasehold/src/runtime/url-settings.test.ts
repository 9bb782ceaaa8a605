import { expect, test } from "vitest";
import { UrlSettings, agreedOn } from "./url-settings.js";

test("a setting is taken out once, and the rest stays in the query", () => {
  const settings = new UrlSettings("ttlMax=15s&rate=0.1&other=1");
  expect([settings.takeDuration("ttlMax"), settings.takeNumber("rate")]).toEqual([15_000, 0.1]);
  expect([settings.take("ttlMax"), settings.takeDuration("absent"), settings.takeNumber("absent")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(settings.query.toString()).toBe("other=1");
});

test("an address without a question mark has no settings", () => {
  expect([...new UrlSettings(undefined).query]).toEqual([]);
});

test("an empty number is NaN", () => expect(new UrlSettings("rate=").takeNumber("rate")).toBeNaN());

test("a setting that is given twice is refused", () => {
  expect(() => new UrlSettings("a=1&a=1").take("a")).toThrow("a is given more than once");
});

test("addresses agree if those with a setting give the same value", () => {
  expect(agreedOn("ttlMax", [undefined, 5, 5])).toBe(5);
  expect(agreedOn("ttlMax", [undefined])).toBeUndefined();
  expect(() => agreedOn("ttlMax", [5, undefined, 6])).toThrow(
    "the addresses contradict each other on ttlMax",
  );
});
