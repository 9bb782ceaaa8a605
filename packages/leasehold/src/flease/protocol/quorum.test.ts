import * as fc from "fast-check";
import { expect, test } from "vitest";
import { withFaults } from "../../../../../test/planted/switches.js";
import { cellOf, excludesQuorum, excludesQuorumFromNowOn, jointCellOf, sizeOf } from "./quorum.js";

test("the size of a set is its number of bits, up to all 32", () => {
  fc.assert(
    fc.property(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), (set) => {
      expect(sizeOf(set)).toBe((set >>> 0).toString(2).replaceAll("0", "").length);
    }),
  );
  expect([sizeOf(0), sizeOf(-1), sizeOf(1 << 30)]).toEqual([0, 32, 1]);
});

const majorityOf = (size: number) => cellOf(Array.from({ length: size }, (_, index) => index)).majority;

test("two quorums of the planted size need not meet (P20)", () => {
  expect(withFaults({ smallQuorum: true }, () => 2 * majorityOf(3))).toBeLessThan(3);
});

test("a set that excludes every quorum of the cell after a joint one excludes those of the joint one too", () => {
  const joint = jointCellOf(cellOf([0, 1, 2]), cellOf([0, 1, 3]));
  const excludes = (...members: number[]) => {
    const set = members.reduce((bits, member) => bits | (1 << member), 0);
    return [excludesQuorum(joint, set), excludesQuorumFromNowOn(joint, set)];
  };
  expect(excludes(0, 1)).toEqual([true, true]);
  expect(excludes(1, 3)).toEqual([true, true]);
  // 1 and 3 are a quorum when the change is over.
  expect(excludes(0, 2)).toEqual([true, false]);
  // 0 and 1 already are a quorum.
  expect(excludes(2, 3)).toEqual([false, false]);
  const [, inJointAlone] = withFaults({ breakBlocksEitherCell: true }, () => excludes(0, 2));
  expect(inJointAlone).toBe(true);
});
