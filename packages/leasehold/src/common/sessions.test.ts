import { expect, test } from "vitest";
import { Sessions } from "./sessions.js";

test("a token is valid for its time after its last use, and not a moment longer", () => {
  const sessions = new Sessions(300, 10);
  sessions.add("t", "ann", 0);
  expect(sessions.use("t", 299)).toBe("ann");
  expect(sessions.use("t", 598)).toBe("ann");
  expect(sessions.use("t", 898)).toBeUndefined();
});

test("expired tokens are forgotten, and the last one used stays when there is no room", () => {
  const sessions = new Sessions(300, 2);
  sessions.add("old", "ann", 0);
  sessions.add("new", "bob", 10);
  expect(sessions.use("old", 20)).toBe("ann");
  sessions.add("newest", "cy", 30);
  expect(["old", "new", "newest"].map((token) => sessions.use(token, 40))).toEqual(["ann", undefined, "cy"]);
  sessions.tick(340);
  expect(sessions.size).toBe(0);
});

test("the end of a user ends all tokens of that user, and no others", () => {
  const sessions = new Sessions(300, 10);
  for (const [token, user] of [
    ["a1", "ann"],
    ["b1", "bob"],
    ["a2", "ann"],
  ] as const)
    sessions.add(token, user, 0);
  sessions.end("ann");
  expect(["a1", "a2", "b1"].map((token) => sessions.use(token, 1))).toEqual([undefined, undefined, "bob"]);
  sessions.endAll();
  expect(sessions.use("b1", 2)).toBeUndefined();
});
