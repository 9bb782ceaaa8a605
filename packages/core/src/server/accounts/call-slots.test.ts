import { expect, test } from "vitest";
import { CallSlots } from "./call-slots.js";

const stays = () => new AbortController().signal;

test("waiters get free slots in order; one that gives up holds none", async () => {
  const slots = new CallSlots(2);
  const [first, second] = [await slots.take("one", stays()), await slots.take("one", stays())];
  const got: string[] = [];
  const leaving = new AbortController();
  const asked = ["a", "gone", "b", "c"].map((name) =>
    slots.take(name, name === "gone" ? leaving.signal : stays()).then(
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
  // Both slots are free again, and there are no others.
  await Promise.all([slots.take("one", stays()), slots.take("one", stays())]);
  const third = slots.take("one", leaving.signal).catch(() => "refused");
  expect(await third).toBe("refused");
});

test("a full queue refuses, and a client that leaves it makes room for the next one", async () => {
  const slots = new CallSlots(1);
  await slots.take("first", stays());
  const leaving = new AbortController();
  const waiting = Array.from({ length: 1_024 }, (_, number) =>
    slots.take(`client ${number}`, number === 0 ? leaving.signal : stays()),
  );
  await expect(slots.take("late", stays())).rejects.toThrow("too many requests");
  leaving.abort(new Error("gone"));
  await expect(waiting[0]).rejects.toThrow("gone");
  void slots.take("late", stays());
  await expect(slots.take("later", stays())).rejects.toThrow("too many requests");
});

test("one client gets half of the queue", async () => {
  const slots = new CallSlots(1);
  await slots.take("first", stays());
  for (let count = 0; count < 512; count += 1) void slots.take("greedy", stays());
  await expect(slots.take("greedy", stays())).rejects.toThrow("too many requests");
  void slots.take("other", stays());
});
