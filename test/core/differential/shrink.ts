import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Action, Sequence } from "./action.js";

/** The most attempts at a smaller sequence. */
const triesMax = 400;

/**
 * Shrinks a failing sequence until nothing more can be left out: first actions, in halves and ever smaller
 * parts (Zeller's delta debugging), then parts of requests. The result fails in the same way.
 */
export async function shrunk(
  sequence: Sequence,
  fails: (smaller: Sequence) => Promise<boolean>,
): Promise<Sequence> {
  let left = triesMax;
  let { actions } = sequence;
  const take = async (candidate: readonly Action[]): Promise<boolean> => {
    left -= 1;
    if (left < 0 || !(await fails({ ...sequence, actions: candidate }))) return false;
    actions = candidate;
    return true;
  };
  const leaveOutActions = async (partMost: number): Promise<void> => {
    for (let part = partMost; part >= 1; part = part === 1 ? 0 : Math.ceil(part / 2))
      for (let at = actions.length; at > 0;) {
        at = Math.max(0, Math.min(at, actions.length) - part);
        await take([...actions.slice(0, at), ...actions.slice(at + part)]);
      }
  };
  await leaveOutActions(Math.ceil(actions.length / 2));
  for (let at = actions.length - 1; at >= 0; at -= 1) {
    const simpler = async (): Promise<boolean> => {
      const action = actions[at]!;
      for (const request of simplerObjects(action.request))
        if (await take(actions.with(at, { ...action, request }))) return true;
      return false;
    };
    while (await simpler());
  }
  // Another action may depend on one that is gone.
  await leaveOutActions(1);
  return { ...sequence, actions };
}

/** The same value without one of its parts, largest part first. */
export function* simplerObjects(json: JsonObject): Generator<JsonObject> {
  for (const name of Object.keys(json)) {
    const { [name]: _left, ...rest } = json;
    yield rest;
  }
  for (const [name, value] of Object.entries(json))
    for (const simpler of simplerValues(value)) yield { ...json, [name]: simpler };
}

function* simplerValues(value: JsonValue): Generator<JsonValue> {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) {
    yield* simplerObjects(value);
    return;
  }
  for (const at of value.keys()) yield value.toSpliced(at, 1);
  for (const [at, each] of value.entries())
    for (const simpler of simplerValues(each)) yield value.with(at, simpler);
}
