import fc from "fast-check";
import { expect, test } from "vitest";
import { redacted, redactedValue } from "./redact.js";

const pem =
  "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA\nQUJDREVGR0hJSg==\n-----END PRIVATE KEY-----";

test.each([
  ["a private key", `before\n${pem}\nafter`, "before\n[removed]\nafter"],
  [
    "one of RSA, in a line of JSON",
    pem.replaceAll("PRIVATE", "RSA PRIVATE").replaceAll("\n", "\\n"),
    "[removed]",
  ],
  ["the end of one, where a log was cut", pem.slice(40), "[removed]"],
  ["the begin of one", pem.slice(0, -30), "[removed]"],
  ["a password in an address", "delta+redis://me:hunter2@h1,h2/0", "delta+redis://me:[removed]@h1,h2/0"],
  ["one without a name", "redis://:hunter2@h1:6379", "redis://:[removed]@h1:6379"],
  ["one with an @", "postgres://me:p@ss@h/db", "postgres://me:[removed]@h/db"],
  ["one with a slash", "redis://:p/ss+w==@h:6379/0", "redis://:[removed]@h:6379/0"],
  ["a token of an address", "x://h/db?ttlMax=5s&token=hunter2", "x://h/db?ttlMax=5s&token=[removed]"],
  ["a token by its name", "aws_session_token = hunter2", "aws_session_token = [removed]"],
  ["a token of JSON", "saw eyJhbGciOi.eyJzdWIi.c2ln.", "saw [removed]."],
  ["a setting of an address", "x://h/db?password=hunter2&schema=a", "x://h/db?password=[removed]&schema=a"],
  ["a field of JSON", '{"clientSecret": "hunter2", "token": 7}', '{"clientSecret": [removed]", "token": 7}'],
  ["a line of YAML", "db_password: hunter2\nttlMax: 15s", "db_password: [removed]\nttlMax: 15s"],
  ["a header", "Authorization: Basic bWU6aHVudGVyMg==", "Authorization: Basic [removed]"],
  ["a cluster key", `member: ${"0a".repeat(32)}`, "member: [removed]"],
])("%s is removed", (_, text, expected) => {
  expect(redacted(text)).toBe(expected);
});

test.each([
  "lease r/1 of a.0123456789abcdef0123456789abcdef, token 812",
  "flease://10.0.0.1:7400,10.0.0.2:7400",
  "core://[::1]:2379/?ttl-max=30s",
  "-----BEGIN CERTIFICATE-----\nMC4CAQ==\n-----END CERTIFICATE-----",
  "the cluster's key file is /etc/leasehold/cluster.key",
])("%j stays", (text) => {
  expect(redacted(text)).toBe(text);
});

test("a known secret is removed wherever it stands, also in names", () => {
  const secret = fc.string({ minLength: 8 }).filter((text) => !"[removed]".includes(text));
  fc.assert(
    fc.property(secret, fc.string(), fc.string(), (known, before, after) => {
      fc.pre(!`${before}[removed]${after}`.includes(known));
      const value = { [`${before}${known}`]: [{ text: `${known}${after}` }], password: "x" };
      const text = JSON.stringify(redactedValue(value, [known]));
      expect(text).not.toContain(JSON.stringify(known).slice(1, -1));
    }),
  );
  expect(redactedValue({ password: "x", count: 3, none: null }, [])).toEqual({
    password: "[removed]",
    count: 3,
    none: null,
  });
});

test.each(["-", "a", "pass", "://a:", " ", "0"])("a megabyte of %j takes a moment", (part) => {
  // CPU time, so that other work on the machine does not count.
  const start = process.cpuUsage();
  redacted(part.repeat(2 ** 20 / part.length));
  expect(process.cpuUsage(start).user / 1_000).toBeLessThan(5_000);
});
