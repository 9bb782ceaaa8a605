import { describe, expect, test } from "vitest";
import { parseClusterKeys } from "../../../runtime/security/cluster-key.js";
import type { Step } from "./authority.js";
import { rotated } from "./cluster-key-file.js";

const digits = (seed: number) =>
  Array.from({ length: 32 }, (_, at) => ((at * 7 + seed * 31) % 256).toString(16).padStart(2, "0")).join("");
const [one, two] = [digits(1), digits(2)];

/** The keys of a role, each as its index among all keys seen. */
function keysOf(text: string, role: "member" | "client"): readonly string[] {
  return (parseClusterKeys(text, "file").get(role) ?? []).map((key) => key.toString("hex"));
}

describe("cluster keys are changed in three steps", () => {
  test.each<[string, string]>([
    ["of one key", `${one}\n`],
    ["of one key with a note", `# ours\n\n${one}  # since May`],
    ["of roles", `member: ${one}\nclient:${two}\n`],
  ])("a file %s", (_what, begin) => {
    const former = keysOf(begin, "member")[0]!;
    const trusted = rotated(begin, "trust");
    const [first, next] = keysOf(trusted, "member");
    expect(first).toBe(former);
    const switched = rotated(trusted, "switch");
    expect(keysOf(switched, "member")).toEqual([next, former]);
    const finished = rotated(switched, "finish");
    expect(keysOf(finished, "member")).toEqual([next]);
    const clients = [begin, trusted, switched, finished].map((text) => keysOf(text, "client").length);
    expect(clients).toEqual(begin.includes("client") ? [1, 2, 2, 1] : [0, 0, 0, 0]);
    expect(keysOf(rotated(finished, "trust"), "member")[0]).toBe(next);
  });

  test("a step out of turn is refused, with the next one", () => {
    const states: [string, Step][] = [[`${one}\n`, "trust"]];
    for (const step of ["trust", "switch"] as const)
      states.push([rotated(states.at(-1)![0], step), step === "trust" ? "switch" : "finish"]);
    for (const [text, due] of states)
      for (const step of (["trust", "switch", "finish"] as const).filter((each) => each !== due))
        expect(() => rotated(text, step)).toThrow(
          expect.objectContaining({
            code: "CERT_STEP",
            message: expect.stringContaining(`is ${due} and not`),
          }),
        );
  });
});
