import { inspect } from "node:util";
import { expect } from "vitest";
import type { Store, StoreAnswer } from "../../packages/leasehold/src/delta/store.js";
import type { OpenStore } from "../../packages/leasehold/src/stores/common/contract.js";
import { type ErrorCode, LeaseholdError } from "../../packages/leasehold/src/lease/errors.js";

export type Known = Exclude<StoreAnswer, { kind: "failed" }>;

export function known(answer: StoreAnswer): Known {
  if (answer.kind === "failed") throw answer.error;
  return answer;
}

export async function read(
  store: Store,
  register: string,
): Promise<{ id: string; text: string | undefined }> {
  const answer = known(await store.perform({ op: "read", register }));
  if (answer.kind !== "cells") throw new Error(`a read was answered with ${answer.kind}`);
  const [cell] = answer.cells;
  return { id: answer.id, text: cell && new TextDecoder().decode(cell) };
}

export async function write(store: Store, register: string, next: string): Promise<Known> {
  const { id, text } = await read(store, register);
  return known(await replace(store, register, id, text, next));
}

export function replace(
  store: Store,
  register: string,
  id: string,
  expected: string | undefined,
  next: string,
): Promise<StoreAnswer> {
  const bytes = (text: string) => new TextEncoder().encode(text);
  return store.perform({
    op: "replace",
    register,
    id,
    expected: expected === undefined ? undefined : bytes(expected),
    next: bytes(next),
  });
}

/** The error with which an operation fails. */
export async function failureOf(answer: Promise<StoreAnswer>): Promise<LeaseholdError> {
  const { kind, ...rest } = await answer;
  if (kind !== "failed" || !("error" in rest)) throw new Error(`it was answered with ${kind}`);
  return rest.error;
}

/** The error with which opening is refused. However it is printed, it must contain no secrets. */
export async function refusalOf(
  open: OpenStore,
  url: URL,
  environment: Record<string, string> = {},
  secrets: readonly string[] = [],
): Promise<LeaseholdError> {
  const error = await open(url, { writer: "test", environment }).then(
    async (store) => {
      await store.close();
      throw new Error(`${store.traits.name} was opened`);
    },
    (reason: unknown) => reason,
  );
  if (!(error instanceof LeaseholdError)) throw error;
  const printed = `${inspect(error, { depth: 9 })} ${JSON.stringify(error)} ${error.stack}`;
  for (const secret of secrets) expect(printed).not.toContain(secret);
  return error;
}

/** For `toMatchObject`: an error with this code and a matching message. */
export function failing(code: ErrorCode, message: RegExp): object {
  return { code, message: expect.stringMatching(message) as string };
}

/** Prints a figure for the readers of the test's output. */
export function report(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Runs an operation sequentially. Returns its median and 99th percentile in ms. */
export async function measure(times: number, run: (index: number) => Promise<unknown>): Promise<string> {
  const tookMs: number[] = [];
  for (let index = 0; index < times; index++) {
    const startMs = performance.now();
    await run(index);
    tookMs.push(performance.now() - startMs);
  }
  tookMs.sort((a, b) => a - b);
  const at = (share: number) => tookMs[Math.min(times - 1, Math.floor(times * share))]!.toFixed(2);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`;
}
