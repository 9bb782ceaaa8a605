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

/** Of Go's bcrypt, by `etcdctl user add`. */
const ofEtcd = "$2a$10$8H6U1B3H1rSbX6SPQGwfEet3WY7kUCzZF.C5jKXxNHoC5TxyR0Gji";

test("a secret of an etcd tells the right password from others; one that would take for ever is refused", async () => {
  const passwords = new Passwords();
  const isRight = (password: string, secret = ofEtcd) =>
    passwords.isRight(password, new TextEncoder().encode(secret), "c");
  expect(await isRight("open sesame")).toBe(true);
  expect(await isRight("open sesame!")).toBe(false);
  await expect(isRight("open sesame", ofEtcd.replace("$10$", "$31$"))).rejects.toThrow("cost beyond 14");
  await expect(isRight("open sesame", "open sesame")).rejects.toThrow("does not know");
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
