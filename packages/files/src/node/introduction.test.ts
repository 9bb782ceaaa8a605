import { expect, test } from "vitest";
import { nothingAsked } from "leasehold/runtime";
import { admitted, checkWelcome, hello, type Self, type Versions, welcome } from "./introduction.js";

const self = (node: string): Self => ({ cluster: "leasehold", node, knows: () => true });

/** The version of a connection between nodes that support these versions. */
function agreed(dialling: Versions, accepting: Versions): readonly number[] {
  const { version } = admitted(self("b"), nothingAsked, hello(self("a"), "b", dialling), accepting);
  return [version, checkWelcome(self("a"), "b", welcome(self("b"), version), dialling)];
}

test.each([
  [2, 2, 2, 2, 2],
  [2, 3, 2, 2, 2],
  [2, 2, 2, 3, 2],
  [2, 3, 2, 3, 3],
  [2, 5, 3, 4, 4],
])(
  "nodes of versions %i to %i and %i to %i speak %i",
  (oldest, newest, theirOldest, theirNewest, version) => {
    const versions = agreed({ oldest, newest }, { oldest: theirOldest, newest: theirNewest });
    expect(versions).toEqual([version, version]);
  },
);

test("a node that knows one version only, and doesn't say a newest, is understood", () => {
  const before = { hello: { version: 2, cluster: "leasehold", node: "a", to: "b" } };
  expect(admitted(self("b"), nothingAsked, before, { oldest: 2, newest: 3 })).toEqual({
    node: "a",
    version: 2,
  });
  // It reads only `version` in our hello.
  expect(hello(self("a"), "b", { oldest: 2, newest: 3 })).toMatchObject({ hello: { version: 2 } });
});

test.each([
  [{ version: 3, newest: 4 }, "it speaks version 3 to 4, and this node 1 to 2"],
  [{ version: 1 }, "it speaks version 1, and this node 2"],
  [{ version: "2" }, 'it speaks version "2", and this node 2'],
  [{ version: 2, newest: 1 }, "it speaks version 2 to 1, and this node 2"],
  [{}, "it speaks version undefined, and this node 2"],
])("nodes without a version in common refuse each other: %j", (said, text) => {
  const ours = text.endsWith("1 to 2") ? { oldest: 1, newest: 2 } : { oldest: 2, newest: 2 };
  const refused = expect.objectContaining({
    code: "VERSION_MISMATCH",
    message: expect.stringContaining(text),
  });
  const rest = { cluster: "leasehold", node: "a", to: "b" };
  expect(() => admitted(self("b"), nothingAsked, { hello: { ...said, ...rest } }, ours)).toThrow(refused);
  expect(() => checkWelcome(self("b"), "a", { welcome: { ...said, ...rest } }, ours)).toThrow(refused);
});
