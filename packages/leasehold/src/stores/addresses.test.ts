import { expect, test } from "vitest";
import { parsePostgresUrl } from "./postgres/address.js";
import { parseRedisUrl } from "./redis/address.js";
import { parseS3Url } from "./s3/address.js";

test.each([
  ["redis://h1", "redis://h1:6379/0"],
  ["redis://u:p@h1:7000/3", "redis://h1:7000/3"],
  ["rediss://h1/?key=k", "rediss://h1:6379/0?key=k"],
  ["redis://[::1]:7000", "redis://[::1]:7000/0"],
])("%s is called %s", (url, name) => {
  expect(parseRedisUrl(new URL(url), {}).name).toBe(name);
});

test("a Redis password comes from the URL, or from where redis-cli looks", () => {
  const environment = { REDISCLI_AUTH: "e" };
  expect(parseRedisUrl(new URL("redis://h1"), environment).password).toBe("e");
  expect(parseRedisUrl(new URL("redis://:a%40b@h1"), environment).password).toBe("a@b");
  expect(parseRedisUrl(new URL("redis://[::1]"), {})).toMatchObject({ host: "::1", password: undefined });
});

test.each([
  ["postgres://u:p@h1/db", "postgres://h1:5432/db"],
  ["postgresql://h1:7000/db?schema=s&sslmode=require", "postgres://h1:7000/db?schema=s"],
])("%s is called %s", (url, name) => {
  const address = parsePostgresUrl(new URL(url), { PGPASSWORD: "x y" });
  expect(address.name).toBe(name);
  expect(address.connectionString).not.toContain("schema");
});

test("user and password of a PostgreSQL server come from the URL or from the environment", () => {
  const environment = { PGUSER: "u", PGPASSWORD: "p@q" };
  expect(parsePostgresUrl(new URL("postgres://h1/db"), environment).connectionString).toBe(
    "postgres://u:p%40q@h1/db",
  );
  expect(parsePostgresUrl(new URL("postgres://me:mine@h1/db"), environment).connectionString).toBe(
    "postgres://me:mine@h1/db",
  );
});

test.each([
  ["s3://bkt", "s3://bkt/", "https://bkt.s3.eu-west-1.amazonaws.com", "/", ""],
  ["s3://bkt/p/q/?region=us-east-2", "s3://bkt/p/q", "https://bkt.s3.us-east-2.amazonaws.com", "/", "p/q/"],
  ["s3://bkt.c/p", "s3://bkt.c/p", "https://s3.eu-west-1.amazonaws.com", "/bkt.c/", "p/"],
  ["s3://bkt/p?endpoint=http://h:1", "s3://bkt/p?endpoint=http://h:1", "http://h:1", "/bkt/", "p/"],
])("%s has the name %s, the origin %s, the root %s and the prefix %j", (url, name, origin, root, prefix) => {
  const address = parseS3Url(new URL(url), { AWS_REGION: "eu-west-1" }, "profile-1");
  expect(address).toMatchObject({ name, origin, root, prefix });
});

test.each([
  () => parseRedisUrl(new URL("redis://h1/name"), {}),
  () => parseRedisUrl(new URL("redis://h1/0?tls=1"), {}),
  () => parseRedisUrl(new URL("http://h1/0"), {}),
  () => parsePostgresUrl(new URL('postgres://h1/db?schema="x"'), {}),
  () => parseS3Url(new URL("s3://bkt/p?endpoint=h1"), {}, undefined),
  () => parseS3Url(new URL("s3://bkt/p?endpoint=http://h1/path"), {}, undefined),
  () => parseS3Url(new URL("s3://bkt/p?acl=x"), {}, undefined),
  () => parseS3Url(new URL("s3://bkt/p//q"), {}, undefined),
])("%s is refused", (parse) => {
  expect(parse).toThrow(expect.objectContaining({ code: "INVALID_URL" }) as Error);
});
