import { setImmediate as turnEnd } from "node:timers/promises";
import { expect, test } from "vitest";
import { realWorld } from "../../../runtime/world.js";
import { Kind, Message } from "../../protocol/message.js";
import type { Identity } from "../wire/identity.js";
import { newCounters } from "./counters.js";
import { Link } from "./link.js";
import { Links } from "./links.js";
import { transportDefaults } from "./transport-options.js";
import type { TransportHandler } from "./transport-handler.js";

const identity = (role: Identity["role"], nodeId: string): Identity => ({
  role,
  nodeId,
  incarnation: "00".repeat(16),
  cluster: "c",
  configHash: "00".repeat(16),
  view: 1,
  cellFunction: 1,
});

const request = Object.assign(new Message(), { kind: Kind.query, view: 1, resource: "r" });

/** What is handed over, in this order; nothing that happens to a link matters here. */
function linksOf(role: Identity["role"]) {
  const heard: string[] = [];
  const handler = new Proxy({} as TransportHandler, {
    get: (_, name) => () => name === "message" && heard.push("ourselves"),
  });
  const links = new Links(identity(role, "self"), realWorld(), handler, newCounters(), transportDefaults);
  const linkTo = (nodeId: string) => {
    const carrier = { ready: true, write: () => heard.push(nodeId) > 0, close: () => {} };
    return new Link(links, carrier, {
      peer: identity("member", nodeId),
      address: "",
      clusterDocument: "",
      account: "",
      mayBeMember: true,
    });
  };
  return { links, linkTo, heard };
}

const microtasksAndTicks = () => new Promise<void>((done) => void process.nextTick(done));

test("the first that a turn says leaves at once, what follows is one write for each peer at its end", async () => {
  const { linkTo, heard } = linksOf("client");
  const [a, b] = [linkTo("a"), linkTo("b")];
  for (let turn = 0; turn < 3; turn += 1) {
    heard.length = 0;
    a.send(request);
    b.send(request);
    expect(heard).toEqual([]); // The caller may have more to say.
    await microtasksAndTicks();
    expect(heard).toEqual(["a", "b"]);
    for (let more = 0; more < 3; more += 1) {
      a.send(request);
      await microtasksAndTicks();
    }
    expect(heard).toEqual(["a", "b"]);
    await turnEnd();
    expect(heard).toEqual(["a", "b", "a"]);
    await turnEnd();
  }
});

test("what a member says to itself waits for the end of the turn, and all else with it", async () => {
  const { links, linkTo, heard } = linksOf("member");
  const a = linkTo("a");
  a.send(request);
  links.loopback!.send(request);
  await microtasksAndTicks();
  expect(heard).toEqual([]);
  await turnEnd();
  expect(heard).toEqual(["ourselves", "a"]);
});
