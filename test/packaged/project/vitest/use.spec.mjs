import { expect, test } from "vitest";
import { use } from "../use.mjs";

test("a test", async () => {
  const outcome = await use();
  console.log(JSON.stringify(outcome));
  expect(outcome.memory).toBe("held");
}, 30_000);
