import { expect, test } from "vitest";
import { askRedisFacts } from "./server-facts.js";

/** The facts of a server that syncs each write before it answers, with the given changes. */
function serverWith(changed: Readonly<Record<string, string>>, replicas = 0) {
  const settings: Readonly<Record<string, string>> = {
    appendonly: "yes",
    appendfsync: "always",
    "no-appendfsync-on-rewrite": "no",
    ...changed,
  };
  return ([verb, , name]: readonly string[]) =>
    Promise.resolve(
      verb === "INFO"
        ? `redis_version:7.0.15\r\nrole:master\r\nconnected_slaves:${replicas}\r\n`
        : [name, settings[name!]],
    );
}

test("a server that syncs each write before it answers is durable", async () => {
  expect(await askRedisFacts(serverWith({}))).toMatchObject({ durable: true });
});

test.each([
  ["keeps no file", { appendonly: "no" }],
  ["syncs every second", { appendfsync: "everysec" }],
  ["leaves it to the system", { appendfsync: "no" }],
  ["does not sync while it rewrites its file", { "no-appendfsync-on-rewrite": "yes" }],
])("a server that %s is not durable, and reports that", async (_, changed) => {
  const { durable, persistence } = await askRedisFacts(serverWith(changed));
  expect(durable).toBe(false);
  const [[name, value]] = Object.entries(changed) as [[string, string]];
  expect(persistence).toContain(`${name} ${value}`);
});

test("a server with a replica is not durable: the replica may take over with fewer writes", async () => {
  expect(await askRedisFacts(serverWith({}, 1))).toMatchObject({ durable: false });
});

test("a server that does not show its settings is not durable", async () => {
  const shown = serverWith({});
  const facts = await askRedisFacts((words) =>
    words[0] === "CONFIG" ? Promise.reject(new Error("NOPERM")) : shown(words),
  );
  expect(facts).toMatchObject({ durable: false, persistence: "its persistence is unknown" });
});
