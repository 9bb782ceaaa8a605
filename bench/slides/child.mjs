// Child processes that report when they are ready, and answer requests.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** The next message of a child; an error if the child ends instead. */
async function messageOf(child) {
  const settled = new AbortController();
  const { signal } = settled;
  const ended = once(child, "exit", { signal }).then(() => {
    throw new Error(`${child.spawnargs.slice(-2).join(" ")} ended`);
  });
  try {
    const [message] = await Promise.race([once(child, "message", { signal }), ended]);
    return message;
  } finally {
    settled.abort();
  }
}

/** Starts a script of this folder with these arguments, and waits until it is ready. */
export async function startChild(script, words, execArgv = []) {
  const child = fork(fileURLToPath(new URL(script, import.meta.url)), [JSON.stringify(words)], { execArgv });
  let message = await messageOf(child);
  while (message !== "ready") message = await messageOf(child);
  return child;
}

export function ask(child, words) {
  if (!child.connected) throw new Error(`${child.spawnargs.slice(-2).join(" ")} has ended`);
  child.send(words);
  return messageOf(child);
}

export async function stopAll(children) {
  const alive = children.filter(({ connected }) => connected);
  const exits = alive.map((child) => once(child, "exit"));
  for (const child of alive) child.disconnect();
  await Promise.all(exits);
}
