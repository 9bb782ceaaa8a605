import * as fc from "fast-check";
import { expect, test } from "vitest";
import { benchSettings } from "../../../../../test/support/flease-bench.js";
import { silent } from "../../runtime/logger.js";
import { realWorld } from "../../runtime/world.js";
import { defineCluster } from "./cluster.js";
import { FleaseNode } from "./flease-node.js";
import type { Link } from "./transport/link.js";
import type { Transport } from "./transport/transport.js";

/**
 * Members come, go, move and change ids at one address, in random orders. A client must dial each member of
 * the present view where it is, and nobody else.
 */

const ids = ["a", "b", "c", "d", "e"];
const addresses = ["h:1", "h:2", "h:3", "h:4"];

/** Three members, each at its own address. */
const membersAt = fc
  .tuple(
    fc.shuffledSubarray(ids, { minLength: 1, maxLength: 3 }),
    fc.shuffledSubarray(addresses, { minLength: 3 }),
  )
  .map(([members, places]) => Object.fromEntries(members.map((id, index) => [id, places[index]!])));

/** A client that records which member it dials at which address. */
function aClient(foundAt: ReadonlyMap<string, string>) {
  const settings = benchSettings();
  const founding = { a: "h:1", b: "h:2", c: "h:3" };
  const cluster = defineCluster("test", settings, founding);
  const node = new FleaseNode({
    world: realWorld(),
    cluster,
    role: "client",
    nodeId: "client",
    logger: silent,
  });
  const real = node.transport;
  const dialed = new Map<string, string | undefined>();
  node.transport = {
    links: [],
    dial: (address: string, id?: string) => void dialed.set(address, id),
    undial: (address: string) => void dialed.delete(address),
  } as unknown as Transport;
  node.dialMembers(foundAt);
  const hear = (number: number, at: Record<string, string>) => {
    const members = Object.keys(at).sort();
    const view = { number, stamp: number, members, cellSize: members.length };
    const from = { role: "member", peerId: members[0] } as Link;
    node.calls.answer(from, "view", { view, barrier: 0, settled: [], addresses: at });
  };
  const close = async () => {
    node.transport = real;
    await node.close();
  };
  return { dialed, hear, close, founding };
}

const byId = (dialed: Map<string, string | undefined>) =>
  Object.fromEntries([...dialed].map(([address, id]) => [id, address]));

test("whatever changes, each member is dialed where it is, and nobody else", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(membersAt, { minLength: 1, maxLength: 6 }), async (views) => {
      const { dialed, hear, close } = aClient(new Map());
      try {
        for (const [index, at] of views.entries()) {
          hear(index + 2, at);
          expect(byId(dialed)).toEqual(at);
        }
      } finally {
        await close();
      }
    }),
  );
});

test("a member reached at another address is dialed there until its address in the cluster changes", async () => {
  const { dialed, hear, close, founding } = aClient(new Map([["a", "localhost:1"]]));
  try {
    expect(byId(dialed)).toEqual({ ...founding, a: "localhost:1" });
    hear(2, { ...founding, b: "h:4" });
    expect(byId(dialed)).toEqual({ ...founding, a: "localhost:1", b: "h:4" });
    hear(3, { ...founding, a: "h:5" });
    expect(byId(dialed)).toEqual({ ...founding, a: "h:5" });
  } finally {
    await close();
  }
});
