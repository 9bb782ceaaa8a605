import { expect, test } from "vitest";
import { leasehold } from "../../../../test/support/built.js";

test.each(["help", "help run", "help core", "help options", "help exit-codes", "run --help"])(
  "leasehold %s prints help and no error",
  async (words) => {
    const { code, stderr, stdout } = await leasehold(words.split(" ")).finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.length).toBeGreaterThan(100);
  },
);

test("a group of commands without one of them is an error that says so", async () => {
  const { code, stderr } = await leasehold(["member"]).finished;
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: "leasehold: a command is missing: --help lists them\n",
  });
});
