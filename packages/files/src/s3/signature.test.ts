import { AwsClient } from "aws4fetch";
import fc from "fast-check";
import { expect, test } from "vitest";
import { S3Error } from "./errors.js";
import { checkSignature, type SignedRequest } from "./signature.js";

const user = { name: "me/with/slashes", password: "secret-4711" };
const client = new AwsClient({
  accessKeyId: user.name,
  secretAccessKey: user.password,
  service: "s3",
  region: "r",
  retries: 0,
});
const host = "http://localhost:7489";

async function signed(method: string, target: string, headers: Record<string, string>, signQuery: boolean) {
  const request = await client.sign(host + target, { method, headers, aws: { signQuery, allHeaders: true } });
  const url = new URL(request.url);
  const received: SignedRequest = {
    method,
    url: url.pathname + url.search,
    headers: { host: url.host, ...Object.fromEntries(request.headers) },
  };
  return received;
}

const codeOf = (request: SignedRequest, nowMs = Date.now(), as = user): string => {
  try {
    checkSignature(request, as, nowMs);
    return "right";
  } catch (error) {
    if (error instanceof S3Error) return error.code;
    throw error;
  }
};

const path = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }), {
  minLength: 1,
  maxLength: 3,
});
const query = fc.dictionary(fc.string({ minLength: 1, maxLength: 6 }), fc.string({ maxLength: 6 }), {
  maxKeys: 3,
});

test("what aws4fetch has signed is right, in the header or the address, and any other request is not", async () => {
  await fc.assert(
    fc.asyncProperty(
      path,
      query,
      fc.boolean(),
      fc.constantFrom("GET", "PUT"),
      async (parts, asked, inQuery, method) => {
        fc.pre(parts.every((part) => part !== "." && part !== ".."));
        const search = Object.entries(asked)
          .filter(([name]) => !/^x-amz-/i.test(name))
          .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
          .join("&");
        const target = `/${parts.map(encodeURIComponent).join("/")}${search === "" ? "" : `?${search}`}`;
        const request = await signed(method, target, { "x-amz-meta-a": " two  words " }, inQuery);
        expect(codeOf(request)).toBe("right");
        expect(codeOf({ ...request, method: "DELETE" })).toBe("SignatureDoesNotMatch");
        expect(codeOf({ ...request, url: request.url.replace("/", "/x") })).toBe("SignatureDoesNotMatch");
        const headers = { ...request.headers, "x-amz-meta-a": "other" };
        expect(codeOf({ ...request, headers })).toBe("SignatureDoesNotMatch");
        const more = { ...request.headers, "x-amz-copy-source": "/b/k" };
        expect(codeOf({ ...request, headers: more })).toBe("AccessDenied");
        expect(codeOf(request, Date.now(), { ...user, password: "another" })).toBe("SignatureDoesNotMatch");
        expect(codeOf(request, Date.now(), { ...user, name: "you" })).toBe("InvalidAccessKeyId");
      },
    ),
    { numRuns: 100 },
  );
});

test("a signature is good for 15 minutes on both sides, and an address until it expires", async () => {
  const [request, address] = [
    await signed("GET", "/b", {}, false),
    await signed("GET", "/b?X-Amz-Expires=60", {}, true),
  ];
  const date = String(request.headers["x-amz-date"]);
  const atMs = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  for (const sign of [1, -1]) {
    expect(codeOf(request, atMs + sign * 900_000)).toBe("right");
    expect(codeOf(request, atMs + sign * 900_001)).toBe("RequestTimeTooSkewed");
  }
  const signedAt = Date.parse(
    new URL(host + address.url).searchParams
      .get("X-Amz-Date")!
      .replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"),
  );
  expect(codeOf(address, signedAt + 60_000)).toBe("right");
  expect(codeOf(address, signedAt + 60_001)).toBe("AccessDenied");
  expect(codeOf(address, signedAt - 900_001)).toBe("AccessDenied");
});

test("whatever is sent is right or refused with an error of S3", async () => {
  const request = await signed("GET", "/b/k?a=1", {}, false);
  const address = await signed("GET", "/b/k?a=1", {}, true);
  const cut = fc.record({
    at: fc.nat(600),
    length: fc.nat(20),
    text: fc.string({ unit: "binary-ascii", maxLength: 12 }),
  });
  const changed = (
    text: string,
    { at, length, text: inside }: { at: number; length: number; text: string },
  ): string => {
    const from = at % (text.length + 1);
    return text.slice(0, from) + inside + text.slice(from + length);
  };
  fc.assert(
    fc.property(cut, (how) => {
      const authorization = changed(request.headers.authorization!, how);
      const isSame = authorization === request.headers.authorization;
      const code = codeOf({ ...request, headers: { ...request.headers, authorization } });
      const bare = (text: string): string => text.replace(/\s/g, "");
      const isMeant = isSame || bare(authorization) === bare(request.headers.authorization!);
      expect(isMeant || code !== "right").toBe(true);
      const url = changed(address.url, how);
      expect(typeof codeOf({ ...address, url })).toBe("string");
    }),
    { numRuns: 2_000 },
  );
});
