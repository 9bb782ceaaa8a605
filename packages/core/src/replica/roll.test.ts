import { expect, test } from "vitest";
import { newMember } from "../state/members.js";
import { ListedMembers } from "./roll.js";

const memberAt = (id: bigint, ...hosts: string[]) =>
  newMember(
    id,
    hosts.map((host) => `http://${host}:1`),
    false,
  );
const roll = { members: [memberAt(1n, "a"), memberAt(2n, "b")], removed: new Set<bigint>() };
const idsOf = (listed: ListedMembers, { members, removed } = roll) =>
  listed.unknownTo({ members, removed }).map(({ id }) => id);

test("only members that the log neither knows nor has removed are listed", () => {
  const listed = new ListedMembers();
  listed.take([[memberAt(2n, "b"), memberAt(3n, "c"), memberAt(4n, "d")]]);
  expect(idsOf(listed)).toEqual([3n, 4n]);
  expect(idsOf(listed, { ...roll, removed: new Set([4n]) })).toEqual([3n]);
  expect(idsOf(listed, { ...roll, members: [...roll.members, memberAt(3n, "c")] })).toEqual([4n]);
});

test("the lists of one round replace earlier ones, unless nobody answered", () => {
  const listed = new ListedMembers();
  listed.take([[memberAt(3n, "c")], [memberAt(4n, "d")]]);
  listed.take([]);
  expect(idsOf(listed)).toEqual([3n, 4n]);
  listed.take([[memberAt(4n, "d")]]);
  expect(idsOf(listed)).toEqual([4n]);
});

test("addresses from the log come first, then those from all lists", () => {
  const listed = new ListedMembers();
  const b = roll.members[1]!;
  listed.take([[memberAt(2n, "b2", "b")], [memberAt(2n, "b3")]]);
  expect(listed.addressesOf(b)).toEqual(["http://b:1", "http://b2:1", "http://b3:1"]);
  expect(listed.addressesOf(roll.members[0]!)).toEqual(["http://a:1"]);
});

test("a disk named in any of the lists counts", () => {
  const listed = new ListedMembers();
  listed.take([[memberAt(3n, "c")], [{ ...memberAt(3n, "c"), disk: 7n }], [memberAt(3n, "c")]]);
  expect(listed.unknownTo(roll)[0]!.disk).toBe(7n);
});

test("at most nine members and sixteen addresses of each are listed", () => {
  const listed = new ListedMembers();
  const hosts = Array.from({ length: 17 }, (_, number) => `h${number}`);
  const ids = Array.from({ length: 10 }, (_, number) => BigInt(10 + number));
  listed.take([ids.slice(0, 9).map((id) => memberAt(id, ...hosts.slice(0, 16)))]);
  expect(listed.unknownTo(roll).map(({ peerUrls }) => peerUrls.length)).toEqual(Array(9).fill(16));
  listed.take([ids.map((id) => memberAt(id, ...hosts))]);
  expect(listed.unknownTo(roll).map(({ peerUrls }) => peerUrls.length)).toEqual(Array(9).fill(16));
});
