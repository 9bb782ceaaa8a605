import { expect, test } from "vitest";
import { at, ballot, benchSettings, ask, readOf, wordOf } from "../../../../../test/support/flease-bench.js";
import { Acceptor } from "./acceptor.js";
import { withFaults } from "../../../../../test/planted/switches.js";

/**
 * Found by the simulator (clock mode f, I11). An acceptor starts at 0, having forgotten its promises up to 0
 * + ε. All clocks step back together. The clock fault that follows must not restart the wait from the lower
 * wall clock, nor lower the floor with it. ε = 10, the longest lease is 1000.
 */
function startThenClocksStepBack(): Acceptor {
  const acceptor = new Acceptor(benchSettings(), at(0));
  acceptor.beginRecoveryWait(at(-5_000, { mono: 500 }));
  return acceptor;
}

test("a clock fault during the wait after a start does not shorten that wait", () => {
  const acceptor = startThenClocksStepBack();
  acceptor.wake(at(1_029, { mono: 6_529 }));
  expect(acceptor.ready).toBe(false);
  expect(acceptor.recoveryWaitLeftMs(at(1_029, { mono: 6_529 }))).toBe(1);
  acceptor.wake(at(1_030, { mono: 6_530 }));
  expect(acceptor.ready).toBe(true);
  // Once that wait is over, a later fault follows no memory loss: its wait counts from its own clock reading.
  acceptor.beginRecoveryWait(at(-5_000, { mono: 7_000 }));
  expect(acceptor.recoveryWaitLeftMs(at(-5_000, { mono: 7_000 }))).toBe(1_030);
});

test("a clock fault during the wait after a start does not lower the floor under ballots that were forgotten", () => {
  const wordOnForgottenBallot = () => {
    const acceptor = startThenClocksStepBack();
    acceptor.wake(at(1_030, { mono: 6_530 }));
    return wordOf(ask(acceptor, readOf("p.1", 10), at(1_030, { mono: 6_530 })));
  };
  expect(wordOnForgottenBallot()).toBe("promised");
  expect(withFaults({ clockFaultShortensWait: true }, wordOnForgottenBallot)).toBe("promise");
});

test("a clock fault that steps forward prolongs the recovery wait, and a clone waits as long", () => {
  const acceptor = new Acceptor(benchSettings(), at(0));
  acceptor.beginRecoveryWait(at(3_000, { mono: 500 }));
  for (const each of [acceptor, acceptor.clone()]) {
    each.wake(at(4_029, { mono: 4_000 }));
    expect(each.ready).toBe(false);
    each.wake(at(4_030, { mono: 4_000 }));
    expect(each.floor).toBe(ballot(3_021));
  }
});
