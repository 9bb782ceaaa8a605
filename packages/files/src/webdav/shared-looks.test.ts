import { expect, it } from "vitest";
import { SharedLooks } from "./shared-looks.js";

function scene() {
  const begun: { resolve: (value: string) => void; reject: (error: Error) => void }[] = [];
  const looks = new SharedLooks(
    () => new Promise<string>((resolve, reject) => void begun.push({ resolve, reject })),
  );
  return { begun, looks };
}

it("does not answer a call by a look that began before it", async () => {
  const { begun, looks } = scene();
  const first = looks.at("a");
  const later = [looks.at("a"), looks.at("a")];
  begun[0]!.resolve("old");
  expect(await first).toBe("old");
  expect(begun).toHaveLength(2);
  const last = looks.at("a");
  begun[1]!.resolve("new");
  expect(await Promise.all(later)).toEqual(["new", "new"]);
  begun[2]!.resolve("newest");
  expect(await last).toBe("newest");
});

it("looks again after a look has failed", async () => {
  const { begun, looks } = scene();
  const first = looks.at("a");
  const second = looks.at("a");
  begun[0]!.reject(new Error("away"));
  await expect(first).rejects.toThrow("away");
  begun[1]!.resolve("there");
  expect(await second).toBe("there");
  const third = looks.at("a");
  begun[2]!.resolve("still there");
  expect(await third).toBe("still there");
});

it("looks at different things at once", async () => {
  const { begun, looks } = scene();
  const both = [looks.at("a"), looks.at("b")];
  expect(begun).toHaveLength(2);
  for (const [at, { resolve }] of begun.entries()) resolve(String(at));
  expect(await Promise.all(both)).toEqual(["0", "1"]);
});
