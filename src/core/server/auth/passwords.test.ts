import { expect, test } from "vitest";
import { CoreError } from "../../state/errors.js";
import { Passwords } from "./passwords.js";

test("a secret tells the right password from others, and neither contains it nor repeats itself", async () => {
  const passwords = new Passwords();
  const [one, other] = [
    await passwords.secretOf("open sesame", "c"),
    await passwords.secretOf("open sesame", "c"),
  ];
  expect(await passwords.isRight("open sesame", one, "c")).toBe(true);
  expect(await passwords.isRight("open sesame!", one, "c")).toBe(false);
  expect(await passwords.isRight("", one, "c")).toBe(false);
  expect(new TextDecoder().decode(one)).not.toContain("sesame");
  expect(one).not.toEqual(other);
});

test("one client that asks for more than its share is refused, and another one is served", async () => {
  const passwords = new Passwords();
  const guesses = Array.from({ length: 40 }, () =>
    passwords.waste("guess", "guesser").then(
      () => "done",
      (error: unknown) => (error as CoreError).failure,
    ),
  );
  const served = passwords.waste("mine", "other").then(() => "served");
  // The last are refused before the first are done.
  expect(await guesses.at(-1)).toBe("tooManyRequests");
  void served;
  void guesses;
});
