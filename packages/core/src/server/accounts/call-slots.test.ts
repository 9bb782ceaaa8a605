import { expect, test } from "vitest";
import { CallSlots } from "./call-slots.js";

const stays = () => new AbortController().signal;

test("a waiter gets the next free slot in turn; one that gives up holds none", async () => {
  const slots = new CallSlots(2);
  const [first, second] = [await slots.take(stays()), await slots.take(stays())];
  const got: string[] = [];
  const leaving = new AbortController();
  const asked = ["a", "gone", "b", "c"].map((name) =>
    slots.take(name === "gone" ? leaving.signal : stays()).then(
      (giveBack) => {
        got.push(name);
        return giveBack;
      },
      () => undefined,
    ),
  );
  await Promise.resolve();
  expect(got).toEqual([]);
  leaving.abort(new Error("gone"));
  expect(await asked[1]).toBeUndefined();
  first();
  await asked[0];
  expect(got).toEqual(["a"]);
  second();
  (await asked[0])!();
  const [b, c] = [await asked[2], await asked[3]];
  expect(got).toEqual(["a", "b", "c"]);
  b!();
  c!();
  // Both are free again, and no more.
  await Promise.all([slots.take(stays()), slots.take(stays())]);
  const third = slots.take(leaving.signal).catch(() => "refused");
  expect(await third).toBe("refused");
});

test("a full queue refuses", async () => {
  const slots = new CallSlots(1);
  await slots.take(stays());
  for (let count = 0; count < 1_024; count += 1) void slots.take(stays());
  await expect(slots.take(stays())).rejects.toThrow("too many requests");
});
