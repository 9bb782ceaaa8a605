import { expect, test } from "vitest";
import { acquireOf, benchSettings, message, releaseOf } from "../../../../../test/support/flease-bench.js";
import { LeaseholdError } from "../../lease/errors.js";
import { Kind, Message } from "../protocol/message.js";
import { Agreement } from "./agreement.js";
import { StoreMedium } from "./medium.js";
import { StoreAcceptor } from "./store-acceptor.js";
import type { Revision, Visit } from "./visit.js";

/** The medium, with visits that the test completes. */

const settings = benchSettings();

function bench() {
  const under: { end: (came: Revision<Visit>) => void }[] = [];
  const events: string[] = [];
  const visiting = {
    acceptor: new StoreAcceptor(settings),
    agreement: new Agreement(settings, 3),
    stores: 3,
    idOf: () => "",
    now: () => {
      throw new Error("nobody runs the visits");
    },
    timeoutMs: 100,
  };
  const medium = new StoreMedium(visiting, (_protocol, end) => under.push({ end }), {
    deliver: (store, reply) => events.push(`reply ${store} ${reply.number}`),
    heard: (resource) => events.push(`heard ${resource}`),
    visited: (store, error) => events.push(`visited ${store} ${error?.code ?? "well"}`),
  });
  const seen = { content: undefined, record: undefined };
  const came = (number?: number): Revision<Visit> => {
    const reply = number === undefined ? undefined : Object.assign(new Message(), { number });
    return { value: { reply, heard: undefined }, seen };
  };
  return { medium, under, events, came };
}

test("requests for one resource at one store keep their order, others do not wait for each other", () => {
  const { medium, under, events, came } = bench();
  medium.send(0, acquireOf("p.1", 0, 500));
  medium.send(0, releaseOf("p.1", 0, 1));
  medium.send(1, acquireOf("p.1", 0, 500));
  medium.send(0, message(Kind.read, { resource: "other" }));
  expect([under.length, medium.busy, medium.busyWith("r")]).toEqual([3, 3, 2]);
  under[0]!.end(came(7));
  expect([under.length, medium.busyWith("r")]).toEqual([4, 2]);
  under[3]!.end(came());
  expect([medium.busy, events]).toEqual([2, ["reply 0 7", "visited 0 well", "visited 0 well"]]);
});

test("a visit that fails delivers nothing, and the next one follows", () => {
  const { medium, under, events } = bench();
  medium.send(2, acquireOf("p.1", 0, 500));
  medium.send(2, releaseOf("p.1", 0, 1));
  under[0]!.end({ error: new LeaseholdError("STORE_UNAVAILABLE") });
  expect([under.length, events]).toEqual([2, ["visited 2 STORE_UNAVAILABLE"]]);
});

test("the queue is bounded: the excess is dropped, as on any network", () => {
  const { medium, under, came } = bench();
  for (let sent = 0; sent < 100; sent += 1) medium.send(0, acquireOf("p.1", sent, 500));
  for (let ended = 0; ended < under.length; ended += 1) under[ended]!.end(came());
  expect([under.length, medium.busy]).toEqual([9, 0]);
  for (let sent = 0; sent < 65_540; sent += 1) medium.send(0, message(Kind.read, { resource: `r${sent}` }));
  expect(medium.busy).toBe(65_536);
});
