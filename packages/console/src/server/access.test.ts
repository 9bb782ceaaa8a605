import { describe, expect, test } from "vitest";
import { refusal } from "./access.js";

const open = { hosts: new Set(["localhost", "127.0.0.1", "[::1]"]) };
const locked = { ...open, password: "correct horse" };
const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` });
const here = { host: "localhost:7480" };

describe("the console's access", () => {
  test.each([["localhost:7480"], ["127.0.0.1:7480"], ["[::1]:7480"], ["LOCALHOST"]])(
    "accepts the name %s",
    (host) => {
      expect(refusal({ host }, open, false)).toBeUndefined();
    },
  );

  test.each([
    ["a name that another site lets lead here", { host: "evil.example:7480" }, 421],
    ["no name", {}, 421],
    ["a request of another site's page", { ...here, origin: "https://evil.example" }, 403],
    ["one that the browser says is another site's", { ...here, "sec-fetch-site": "cross-site" }, 403],
    ["one of a page on another port", { ...here, "sec-fetch-site": "same-site" }, 403],
  ] as const)("refuses %s", (_what, headers, status) => {
    expect(refusal(headers, open, false)).toMatchObject({ status });
  });

  test("takes changes as JSON only, which no form of another site can send", () => {
    const form = { ...here, "content-type": "application/x-www-form-urlencoded" };
    expect(refusal(form, open, true)).toMatchObject({ status: 415 });
    expect(refusal({ ...here, "content-type": "application/json" }, open, true)).toBeUndefined();
  });

  test("asks for the password, whatever the user's name", () => {
    expect(refusal(here, locked, false)).toMatchObject({ status: 401 });
    expect(refusal({ ...here, ...basic("ann:wrong") }, locked, false)).toMatchObject({ status: 401 });
    expect(refusal({ ...here, ...basic("ann:correct horse") }, locked, false)).toBeUndefined();
    expect(refusal({ ...here, authorization: "Bearer correct horse" }, locked, false)).toMatchObject({
      status: 401,
    });
  });
});
