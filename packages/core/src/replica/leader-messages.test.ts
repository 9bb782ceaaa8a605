import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { CommandBody } from "./context.js";
import { isProposedBySender } from "./proposals/leader-messages.js";

const commandOf = (proposer: bigint, body?: CommandBody) =>
  toBinary(CommandSchema, create(CommandSchema, body === undefined ? { proposer } : { proposer, body }));
const head = { to: 1n, number: 1, term: 1, life: 0, settled: 0, again: false };
const isProposedBy = (command: Uint8Array, from: bigint) =>
  isProposedBySender({ kind: "propose", ...head, from, command });
const isChangeOf = (command: Uint8Array, from: bigint) =>
  isProposedBySender({ kind: "propose-change", ...head, from, command });

const put: CommandBody = { case: "put", value: { key: new Uint8Array(1_000) } };
const describes = (member: bigint): CommandBody => ({
  case: "memberAttributes",
  value: { member, name: "x" },
});
const largest = 2n ** 64n - 1n;

test("a command is accepted only from its proposer", () => {
  for (const id of [1n, 7n, largest]) {
    expect(isProposedBy(commandOf(id, put), id)).toBe(true);
    expect(isProposedBy(commandOf(id, put), id - 1n)).toBe(false);
    expect(isProposedBy(commandOf(0n, put), id)).toBe(false);
  }
});

test("without a proposer, a server may only describe itself", () => {
  expect(isProposedBy(commandOf(0n, describes(7n)), 7n)).toBe(true);
  expect(isProposedBy(commandOf(0n, describes(8n)), 7n)).toBe(false);
  expect(isProposedBy(Buffer.concat([commandOf(0n, describes(7n)), commandOf(0n, put)]), 7n)).toBe(false);
});

test("the last of several proposers counts, as in decoding", () => {
  const both = Buffer.concat([commandOf(7n, put), commandOf(8n)]);
  expect(isProposedBy(both, 7n)).toBe(false);
  expect(isProposedBy(both, 8n)).toBe(true);
});

test("only membership changes are proposed as such", () => {
  const change: CommandBody = { case: "memberChange", value: { member: 8n } };
  const update: CommandBody = { case: "memberUpdate", value: { member: 8n } };
  for (const body of [change, update]) {
    expect(isChangeOf(commandOf(7n, body), 7n)).toBe(true);
    expect(isChangeOf(commandOf(7n, body), 8n)).toBe(false);
    expect(isProposedBy(commandOf(7n, body), 7n)).toBe(false);
  }
  for (const body of [put, describes(7n)]) expect(isChangeOf(commandOf(7n, body), 7n)).toBe(false);
});

/** A put with undecodable content and a valid proposer. */
const unreadable = Buffer.concat([commandOf(7n), Uint8Array.of(0x1a, 0x02, 0x0a, 0x7f)]);

test("bytes that are not a command are accepted from nobody", () => {
  const whole = commandOf(7n, put);
  for (const bytes of [new Uint8Array(), Uint8Array.of(0xff), whole.subarray(0, 20), whole.subarray(0, -1)])
    expect(isProposedBy(bytes, 7n)).toBe(false);
  for (const is of [isProposedBy, isChangeOf])
    for (const bytes of [commandOf(7n), unreadable]) expect(is(bytes, 7n)).toBe(false);
});
