import { expect, test } from "vitest";
import type { CoreError } from "../../state/errors.js";
import { inThread } from "./bcrypt.js";
import { Passwords } from "./passwords.js";

test("a secret verifies only its password, does not contain it, and is salted", async () => {
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

/** A hash by Go's bcrypt, made by `etcdctl user add`. */
const ofEtcd = "$2a$10$8H6U1B3H1rSbX6SPQGwfEet3WY7kUCzZF.C5jKXxNHoC5TxyR0Gji";

test("a secret from etcd verifies only its password; one that would take forever is refused", async () => {
  const passwords = new Passwords();
  const isRight = (password: string, secret = ofEtcd) =>
    passwords.isRight(password, new TextEncoder().encode(secret), "c");
  expect(await isRight("open sesame")).toBe(true);
  expect(await isRight("open sesame!")).toBe(false);
  await expect(isRight("open sesame", ofEtcd.replace("$10$", "$31$"))).rejects.toThrow("cost beyond 14");
  await expect(isRight("open sesame", "open sesame")).rejects.toThrow("unknown to this version");
});

const settled = (asked: Promise<unknown>) =>
  asked.then(
    () => "done",
    (error: unknown) => (error as CoreError).failure,
  );

test("a host beyond its share is refused on any number of ports, and another host is served", async () => {
  const passwords = new Passwords(12);
  const order: string[] = [];
  const ask = (who: string) =>
    settled(passwords.isRight("guess", new Uint8Array(), who).then(() => order.push(who.slice(0, 8))));
  const guesses = Array.from({ length: 10 }, (_, index) => ask(`10.0.0.1:${1_000 + index}`));
  const mine = ask("10.0.0.2:7");
  expect(await Promise.all([...guesses, mine])).toEqual([
    ...Array<string>(6).fill("done"),
    ...Array<string>(4).fill("tooManyRequests"),
    "done",
  ]);
  // One check was already in progress, and one had its turn.
  expect(order.indexOf("10.0.0.2")).toBeLessThanOrEqual(2);
});

test("a secret that would take too much work is refused at once, without delaying others", async () => {
  const passwords = new Passwords();
  const text = new TextDecoder().decode(await passwords.secretOf("open sesame", "c"));
  const isRight = (secret: string) => passwords.isRight("open sesame", new TextEncoder().encode(secret), "c");
  expect(await isRight(text)).toBe(true);
  for (const secret of [
    text.replace("p=1", "p=100000"),
    text.replace("N=16384", "N=1048576"),
    text.slice(0, -4),
  ])
    await expect(isRight(secret)).rejects.toMatchObject({ code: "UNSUPPORTED" });
  await expect(isRight(text.replace("N=16384", "N=16385"))).rejects.toThrow(/./);
  expect(await isRight(text)).toBe(true);
});

test("a thread that ends silently, or never, fails one request, and the next one has another", async () => {
  await expect(inThread("process.exit(3)", {})).rejects.toThrow("has ended with 3");
  await expect(inThread("throw new Error('no')", {})).rejects.toThrow("no");
  await expect(inThread("setInterval(() => 0, 1000)", {}, 50)).rejects.toThrow("has ended with");
  const echo =
    'const { parentPort, workerData } = require("node:worker_threads"); parentPort.postMessage(workerData);';
  expect(await inThread(echo, 7)).toBe(7);
});
