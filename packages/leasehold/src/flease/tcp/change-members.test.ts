import { expect, test, vi } from "vitest";
import { LeaseholdError } from "../../lease/errors.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { changeMembers } from "./change-members.js";
import type { MemberChange } from "../views/member-change.js";
import type { ViewStatus } from "../views/member-change.js";

const client = vi.hoisted(() => ({ node: undefined as unknown }));
vi.mock("./client.js", () => ({ openFleaseClient: () => Promise.resolve(client.node) }));

const view = (number: number, ids: string, before?: string): ViewStatus => ({
  number,
  members: Object.fromEntries([...ids].map((id) => [id, `h:${id}`])),
  cellSize: ids.length,
  ...(before !== undefined && { joint: { before: [...before], unsettled: [], waitMs: 1 } }),
});

const silent = new LeaseholdError("UNREACHABLE", "no answer");
const noMember = new LeaseholdError("INVALID_CONFIG", "the members are not changed: it is no member");

/** Members that answer in the order given here: each call, and its result. */
async function asking(
  change: MemberChange,
  script: readonly (readonly [method: "change" | "members", answer: ViewStatus | LeaseholdError])[],
  more: { readonly members?: number; readonly number?: number } = {},
) {
  const world = new VirtualWorld();
  const asked: string[] = [];
  const left = [...script];
  const { members = 1, number = 0 } = more;
  client.node = {
    views: { voters: () => Array.from({ length: members }, (_, index) => index) },
    peer: { views: { view: { number } } },
    link: (index: number) => ({ index }),
    transport: {
      call: (_link: unknown, method: string) => {
        asked.push(method);
        const [expected, answer] = left.shift() ?? ["nothing", silent];
        if (expected !== method) return Promise.reject(new Error(`${method} in place of ${expected}`));
        return answer instanceof LeaseholdError ? Promise.reject(answer) : Promise.resolve(answer);
      },
    },
    close: () => Promise.resolve(),
  };
  let outcome: unknown;
  void changeMembers([], {}, change, {}, world).then(
    (status) => (outcome = Object.keys(status.members).join("")),
    (error: unknown) => (outcome = error),
  );
  await world.advance(10_000);
  return { outcome, asked: asked.length };
}

const addD = { add: "d", address: "h:d" };

test("a change that another one replaced is requested again, and not reported as done", async () => {
  const { outcome, asked } = await asking(addD, [
    ["change", view(2, "abcd", "abc")],
    // The only member that knew of the change has gone.
    ["members", view(2, "abce", "abc")],
    ["members", view(3, "abce")],
    ["change", view(4, "abcde", "abce")],
    ["members", view(5, "abcde")],
  ]);
  expect([outcome, asked]).toEqual(["abcde", 5]);
});

test("a removal is complete when a later check shows it, even after lost answers", async () => {
  const lostOfEnd = await asking({ remove: "c" }, [
    ["change", view(2, "ab", "abc")],
    ["members", silent],
    ["members", view(3, "ab")],
  ]);
  expect(lostOfEnd.outcome).toBe("ab");
  const lostOfBeginning = await asking({ remove: "c" }, [
    ["change", silent],
    ["members", view(3, "ab")],
  ]);
  expect(lostOfBeginning.outcome).toBe("ab");
  const neverBegun = await asking({ remove: "c" }, [
    ["change", silent],
    ["members", view(1, "abc")],
    ["change", view(2, "ab", "abc")],
    ["members", view(3, "ab")],
  ]);
  expect(neverBegun.outcome).toBe("ab");
  const never = await asking({ remove: "x" }, [["change", noMember]]);
  expect(never.outcome).toBe(noMember);
});

test("a member in an older view than the newest known does not answer if another can", async () => {
  const behind: ViewStatus = {
    ...view(1, "abc"),
    waiting: { code: "NO_QUORUM", text: "the others are in another view" },
  };
  const { outcome } = await asking(
    { remove: "c" },
    [
      ["change", behind],
      ["change", view(4, "bd", "bcd")],
      ["members", view(1, "abc")],
      ["members", view(5, "bd")],
    ],
    { members: 2, number: 3 },
  );
  expect(outcome).toBe("bd");
});
