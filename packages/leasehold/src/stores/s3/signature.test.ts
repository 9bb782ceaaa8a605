import { expect, test } from "vitest";
import { loadSign } from "./signature.js";

/** The examples in Amazon's description of Signature Version 4 for S3. */
const credentials = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};
const date = new Date("2013-05-24T00:00:00Z");
const origin = "https://examplebucket.s3.amazonaws.com";
const body = new Uint8Array();
const sign = await loadSign();

test.each([
  [
    { method: "GET", url: `${origin}/test.txt`, headers: { range: "bytes=0-9" } },
    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  ],
  [
    { method: "GET", url: `${origin}/?lifecycle=`, headers: {} },
    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
  ],
  [
    { method: "GET", url: `${origin}/?prefix=J&max-keys=2`, headers: {} },
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  ],
])("%o has the signature of Amazon's own example", async (parts, signature) => {
  const headers = await sign({ ...parts, body }, credentials, "us-east-1", date);
  expect(headers.get("authorization")).toMatch(new RegExp(`Signature=${signature}$`));
});

test("a session token and every header are sent and signed", async () => {
  const parts = {
    method: "PUT",
    url: `${origin}/a`,
    headers: { "if-match": '"e"', range: "bytes=0-9" },
    body,
  };
  const headers = await sign(parts, { ...credentials, sessionToken: "a token" }, "us-east-1", date);
  expect(headers.get("x-amz-security-token")).toBe("a token");
  expect(headers.get("authorization")).toContain(
    "SignedHeaders=host;if-match;range;x-amz-content-sha256;x-amz-date;x-amz-security-token,",
  );
});

test("the content is signed", async () => {
  const parts = { method: "PUT", url: `${origin}/a`, headers: {}, body: new TextEncoder().encode("abc") };
  const headers = await sign(parts, credentials, "us-east-1", date);
  expect(headers.get("x-amz-content-sha256")).toBe(
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  );
});
