import { expect, it } from "vitest";
import { formatAddress, isLoopback, parseAddress } from "./address.js";

it.each([
  ["127.0.0.1:7400", "127.0.0.1", 7400],
  ["[::1]:7400", "::1", 7400],
  ["[2001:db8::1]:0", "2001:db8::1", 0],
  ["[fe80::1%eth0]:1", "fe80::1%eth0", 1],
  ["db-1.example_net:65535", "db-1.example_net", 65_535],
])("reads %s and writes it again", (text, host, port) => {
  expect(parseAddress(text)).toEqual({ host, port });
  expect(formatAddress(host, port)).toBe(text);
});

it.each([
  "",
  "host",
  "host:",
  ":1",
  "host:65536",
  "host:-1",
  "host:1x",
  "::1:7400",
  "[::1]",
  "[host]:1",
  "[127.0.0.1]:1",
  "a b:1",
  "http://host:1",
])("refuses %j", (text) => {
  expect(() => parseAddress(text)).toThrow(expect.objectContaining({ code: "INVALID_URL" }));
});

it("knows which hosts only this machine can reach", () => {
  const inside = [
    "127.0.0.1",
    "127.255.0.9",
    "::1",
    "0:0:0:0:0:0:0:1",
    "localhost",
    "LOCALHOST",
    "::ffff:127.0.0.1",
  ];
  const outside = [
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "example.org",
    "localhost.example.org",
    "127.0.0.1.example.org",
    "::2",
    "::ffff:10.0.0.1",
    "128.0.0.1",
  ];
  expect(inside.filter((host) => !isLoopback(host))).toEqual([]);
  expect(outside.filter(isLoopback)).toEqual([]);
});

it("keeps a password out of its message", () => {
  expect(() => parseAddress("me:hunter2@h:1")).toThrow(/^"…@h:1" is not an address/);
});
