import { describe, expect, test } from "vitest";
import { parseFarmUrls, storesMax } from "./farm-address.js";

const urls = (...given: string[]) => parseFarmUrls(given).places.map(({ url }) => url.href);
const refused = (...given: string[]) => {
  try {
    return parseFarmUrls(given).ground;
  } catch (error) {
    return `${(error as { code: string }).code}: ${(error as Error).message}`;
  }
};

describe("addresses of farms", () => {
  test("several paths are several stores; a comma in a path is escaped", () => {
    expect(urls("delta+file:///mnt/a,/mnt/b,/mnt/c")).toEqual([
      "file:///mnt/a",
      "file:///mnt/b",
      "file:///mnt/c",
    ]);
    expect(urls("delta+file:/mnt/a%2Cb,/mnt/c")).toEqual(["file:///mnt/a%2Cb", "file:///mnt/c"]);
    expect(urls("delta+block:/dev/x,/dev/y?slots=8")).toEqual([
      "block:/dev/x?slots=8",
      "block:/dev/y?slots=8",
    ]);
  });

  test("several hosts share user, path and query", () => {
    expect(urls("delta+redis://u:p%40@h1:6379,h2,h3:6381/2?key=k")).toEqual([
      "redis://u:p%40@h1:6379/2?key=k",
      "redis://u:p%40@h2/2?key=k",
      "redis://u:p%40@h3:6381/2?key=k",
    ]);
    expect(urls("delta+s3://b1,b2/prefix?endpoint=http://h:1")).toEqual([
      "s3://b1/prefix?endpoint=http%3A%2F%2Fh%3A1",
      "s3://b2/prefix?endpoint=http%3A%2F%2Fh%3A1",
    ]);
    expect(urls("delta+postgres:///db")).toEqual(["postgres:///db"]);
  });

  test("names in messages have no credentials", () => {
    const { places } = parseFarmUrls([
      "delta+redis://user:secret@h1,h2/0",
      "delta+postgres://me:secret@h/db",
    ]);
    expect(places.map(({ name }) => name)).toEqual(["redis://h1/0", "redis://h2/0", "postgres://h/db"]);
  });

  test("several make one farm; settings may be in any of them", () => {
    const farm = parseFarmUrls([
      "delta+file:///a?ttlMax=20s",
      "delta+redis://h?maxStoreLatency=1.5s&ttlMax=20s&key=k&clockRateError=0.01",
    ]);
    expect(farm.places.map(({ url }) => url.href)).toEqual(["file:///a", "redis://h?key=k"]);
    expect(farm).toMatchObject({
      ground: "delta",
      settings: { ttlMaxMs: 20_000, maxStoreLatencyMs: 1_500, clockRateError: 0.01 },
    });
    expect(parseFarmUrls(["flease+file:///a?maxClockSkew=20ms"])).toMatchObject({
      ground: "flease",
      settings: { maxClockSkewMs: 20 },
    });
  });

  test.each([
    [["delta+nfs:/x"], /nfs is not a kind of store/],
    [["delta+constructor:/x"], /not a kind of store/],
    [["delta+file:a"], /begin with a slash/],
    [["delta+file:///a,b"], /begin with a slash/],
    [["delta+file://host/a"], /begin with a slash/],
    [["delta+redis:"], /needs a host/],
    [["delta+redis://h 1"], /is invalid/],
    [["delta+file:///a#b"], /is delta\+KIND/],
    [["delta+file:///a", "flease+file:///b"], /must be delta\+…, or all flease\+…/],
    [["delta+file:///a", "flease://h:1"], /is delta\+KIND/],
    [["delta+file:///a?ttlMax=20"], /INVALID_DURATION: ttlMax/],
    [["delta+file:///a?ttlMax=2s&ttlMax=3s"], /more than once/],
    [["delta+file:///a?ttlMax=2s", "delta+file:///b?ttlMax=3s"], /contradict each other on ttlMax/],
    [["delta+file:///a?maxClockSkew=1s"], /for flease/],
    [["delta+memory:x", "delta+file:///a"], /cannot be mixed/],
    [Array.from({ length: storesMax + 1 }, (_, index) => `delta+file:///${index}`), /at most 31 stores/],
  ])("%j is refused", (given, why) => {
    expect(refused(...given)).toMatch(why);
    expect(refused(...given)).toMatch(/^INVALID_/);
  });
});

test("an empty clockRateError is an invalid number, and not a perfect clock", () => {
  expect(parseFarmUrls(["delta+file:///a?clockRateError="]).settings.clockRateError).toBeNaN();
});
