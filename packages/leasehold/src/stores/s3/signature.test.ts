import { expect, test } from "vitest";
import { sign } from "./signature.js";

/** The examples of Amazon's own description of Signature Version 4 for S3. */
const credentials = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};
const date = new Date("2013-05-24T00:00:00Z");
const host = "examplebucket.s3.amazonaws.com";
const body = new Uint8Array();

test.each([
  [
    { method: "GET", path: "/test.txt", query: {}, headers: { range: "bytes=0-9" } },
    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  ],
  [
    { method: "GET", path: "/", query: { lifecycle: "" }, headers: {} },
    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
  ],
  [
    { method: "GET", path: "/", query: { prefix: "J", "max-keys": "2" }, headers: {} },
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  ],
])("%o has the signature of Amazon's own example", (parts, signature) => {
  const { authorization } = sign({ ...parts, host, body }, credentials, "us-east-1", date);
  expect(authorization).toMatch(new RegExp(`Signature=${signature}$`));
});

test("a session token is sent and signed", () => {
  const parts = { method: "GET", path: "/", query: {}, headers: {}, host, body };
  const headers = sign(parts, { ...credentials, sessionToken: "a token" }, "us-east-1", date);
  expect(headers["x-amz-security-token"]).toBe("a token");
  expect(headers["authorization"]).toContain(
    "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,",
  );
});
