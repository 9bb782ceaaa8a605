import { expect, test } from "vitest";
import { foreignRequest, isLoopbackHost } from "./foreign-request.js";

test.each([
  [{}, "host"],
  [{ host: "evil.example" }, "host"],
  [{ host: "localhost.evil.example" }, "host"],
  [{ host: "127.0.0.1.evil.example:80" }, "host"],
  [{ host: "LOCALHOST:7450" }, undefined],
  [{ host: "127.0.0.1" }, undefined],
  [{ host: "[::1]:7450" }, undefined],
  [{ host: "localhost", "sec-fetch-site": "cross-site" }, "site"],
  [{ host: "localhost", "sec-fetch-site": "same-site" }, "site"],
  [{ host: "localhost", "sec-fetch-site": "same-origin", origin: "http://localhost" }, undefined],
  [{ host: "localhost", "sec-fetch-site": "none" }, undefined],
  [{ host: "localhost:1", origin: "http://localhost:2" }, "site"],
  [{ host: "localhost:1", origin: "https://localhost:1" }, undefined],
  [{ host: "localhost", origin: "null" }, "site"],
])("%j is another's: %s", (headers, expected) => {
  expect(foreignRequest(headers, isLoopbackHost)).toBe(expected);
});

test("a server that is its own only front takes pages of its own scheme alone", () => {
  const headers = { host: "localhost", origin: "http://localhost" };
  expect(foreignRequest(headers, isLoopbackHost, ["https"])).toBe("site");
});
