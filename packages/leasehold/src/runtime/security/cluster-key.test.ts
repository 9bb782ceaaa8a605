import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { acceptedKey, keyFor, keyId, parseClusterKeys } from "./cluster-key.js";

const digits = (bytes = 32) => randomBytes(bytes).toString("hex");

describe("a cluster key", () => {
  it("alone is the members', and allows every role", () => {
    const key = digits();
    const keys = parseClusterKeys(`  ${key.toUpperCase()}\n`, "key");
    for (const role of ["member", "client", "observer"] as const) {
      expect(keyFor(keys, role)).toEqual({ name: "member", key: Buffer.from(key, "hex") });
    }
  });

  it("of a role allows that and less", () => {
    const [client, observer] = [digits(), digits(64)];
    const keys = parseClusterKeys(
      `# for the office\nclient: ${client}\n\nobserver: ${observer} # looks only`,
      "f",
    );
    expect(keyFor(keys, "member")).toBeUndefined();
    expect(keyFor(keys, "client")?.key.toString("hex")).toBe(client);
    expect(keyFor(keys, "observer")?.key.toString("hex")).toBe(observer);
    expect(keyFor(parseClusterKeys(`client: ${client}`, "f"), "observer")?.name).toBe("client");
  });

  it("may have a second one, which is accepted and never used for dialing", () => {
    const [first, second, client] = [digits(), digits(), digits()];
    const keys = parseClusterKeys(`member: ${first}\nmember: ${second} # next\nclient: ${client}`, "f");
    expect(keyFor(keys, "member")?.key.toString("hex")).toBe(first);
    const idOf = (key: string) => keyId(Buffer.from(key, "hex"));
    const accepted = (id: string | undefined) => acceptedKey(keys, "member", id)?.toString("hex");
    expect([first, second].map((key) => accepted(idOf(key)))).toEqual([first, second]);
    expect([undefined, idOf(client)].map(accepted)).toEqual([first, first]);
    expect(acceptedKey(keys, "observer", idOf(first))).toBeUndefined();
  });

  it.each([
    ["nothing", ""],
    ["a passphrase", "correct horse battery staple"],
    ["too few digits", digits(31)],
    ["too many", digits(65)],
    ["half a byte", `${digits()}a`],
    ["not hexadecimal", `${digits(31)}zz`],
    ["typed, not random", "0123456789".repeat(8)],
    ["zeros", "00".repeat(32)],
    ["an unknown role", `boss: ${digits()}`],
    ["three keys for a role", `member: ${digits()}\n${digits()}\n${digits()}`],
  ])("is not %s; the message does not contain it", (_what, text) => {
    const secret = text.split(": ").at(-1)!.split("\n")[0]!;
    expect(() => parseClusterKeys(text, "the file")).toThrow(
      expect.objectContaining({ code: "INVALID_CONFIG", message: expect.stringMatching(/^the file: /) }),
    );
    let message = "";
    try {
      parseClusterKeys(text, "the file");
    } catch (error) {
      message = (error as Error).message;
    }
    expect(secret === "" || !message.includes(secret)).toBe(true);
  });
});
