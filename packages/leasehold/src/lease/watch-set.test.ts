import { expect, test } from "vitest";
import { WatchSet } from "./watch-set.js";

function counted() {
  const watch = { stops: 0, stop: () => void (watch.stops += 1) };
  return watch;
}

test("closing stops each open watch once, and none that was stopped before", () => {
  const set = new WatchSet();
  const [one, other] = [counted(), counted()];
  set.add(one).stop();
  set.add(other);
  set.close();
  set.close();
  expect([one.stops, other.stops]).toEqual([1, 1]);
});
