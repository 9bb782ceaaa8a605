import { describe, expect, test } from "vitest";
import { type KindName, kinds, profileOf } from "./profile.js";

const hosts = ["a.example.com", "*.example.com", "10.0.0.1", "::1", "localhost"];

describe("a certificate", () => {
  test("has the URI of its role and cluster, encoded", () => {
    const { uri, usages } = profileOf("member", "a@b", "it's $HOME, 1", hosts);
    expect(uri).toBe("leasehold://it%27s%20%24HOME%2C%201/member/a%40b");
    expect(usages).toEqual(["serverAuth", "clientAuth"]);
    expect(profileOf("observer", "x", "c").uri).toBe("leasehold://c/observer");
  });

  test("is a user of a core only if it is one's: no other has a common name without a slash", () => {
    for (const kind of Object.keys(kinds) as KindName[]) {
      const { commonName, uri } = profileOf(kind, "root", "c", ["localhost"]);
      expect([kind, commonName]).toEqual([kind, kind === "core-user" ? "root" : `${kind}/root`]);
      expect(uri === undefined).toBe(kind.startsWith("core-"));
    }
  });

  test.each([
    ["", hosts],
    ["ca", hosts],
    ["../a", hosts],
    ["a/b", hosts],
    ["-a", hosts],
    ["a\nb", hosts],
    ["a".repeat(51), hosts],
    ["a", ["a b"]],
    ["a", ["a,URI:leasehold://c/member/b"]],
    ["a", ["a\nb"]],
    ["a", ["fe80::1%eth0"]],
    ["a", ["http://a"]],
    ["a", Array.from({ length: 101 }, () => "a")],
  ])("is not made for the name %j and the hosts %j", (name, given) => {
    expect(() => profileOf("member", name, "c", given)).toThrow(
      expect.objectContaining({ code: "CERT_NAME", exitCode: 2 }),
    );
  });

  test("of a core's server names hosts", () => {
    expect(() => profileOf("core-peer", "s1", "c")).toThrow(/give --host/);
  });

  test.each(["", "x".repeat(129)])("is for no cluster %j", (cluster) => {
    expect(() => profileOf("client", "a", cluster)).toThrow(/1 to 128 bytes/);
  });
});
