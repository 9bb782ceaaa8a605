import { expect, test } from "vitest";
import { at } from "../../../../../../test/support/flease-bench.js";
import { largestView } from "../../../../../../test/support/large-views.js";
import type { FleasePeer } from "../../peer.js";
import type { Link } from "../transport/link.js";
import { writePublishedView } from "../../views/document.js";
import { ViewPublisher } from "./view-publisher.js";

/** A member with many connected peers, which answer as the test says. */
function aPublisher(count: number) {
  const note = { ...largestView() };
  const links = Array.from({ length: count }, (_, index) => {
    return { role: index === 0 ? "member" : "client", open: true, peerId: `${index}` } as unknown as Link;
  });
  const calls: {
    link: Link;
    params: Record<string, unknown>;
    answer: (value: unknown) => void;
    fail: () => void;
  }[] = [];
  const call = (link: Link, _method: string, params: unknown) =>
    new Promise<unknown>((answer, reject) => {
      calls.push({
        link,
        params: params as Record<string, unknown>,
        answer,
        fail: () => reject(new Error("late")),
      });
    });
  const views = { note: () => note, view: note.view };
  const host = {
    role: "member",
    peer: { views } as unknown as FleasePeer,
    transport: { call, links, loopback: undefined },
  };
  const publisher = new ViewPublisher(host, () => writePublishedView(note));
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  /** All requests since the last check. */
  const asked = async () => {
    await settle();
    return calls.splice(0);
  };
  return { publisher, note, links, asked, stamp: note.view.stamp };
}

test("a view is offered to all, sent to those that want it, and offered again until it is confirmed", async () => {
  const { publisher, links, asked, stamp } = aPublisher(3);
  publisher.offerAll();
  const [first, second, third] = await asked();
  expect([first!.params["view"], second!.link, third!.link]).toEqual([undefined, links[1], links[2]]);
  first!.answer({ stamp, wants: false });
  second!.answer({ stamp: 1, wants: true });
  third!.fail();
  const [whole, ...more] = await asked();
  expect([whole!.link, whole!.params["view"], more]).toEqual([links[1], largestView().view, []]);
  whole!.answer({ stamp });
  await asked();
  publisher.maintain(at(1_000));
  const again = await asked();
  expect(again.map(({ link }) => link)).toEqual([links[2]]);
  again[0]!.answer({ stamp, wants: false });
  await asked();
  publisher.maintain(at(2_000));
  expect(await asked()).toEqual([]);
});

test("members, and nobody else, learn of all members that have left the previous view", async () => {
  const { publisher, note, links, asked, stamp } = aPublisher(2);
  const { settled } = note;
  note.settled = new Map([...settled].slice(1));
  publisher.offerAll();
  for (const { answer } of await asked()) answer({ stamp, wants: false });
  await asked();
  publisher.maintain(at(1_000));
  expect(await asked()).toEqual([]);
  note.settled = settled;
  publisher.maintain(at(2_000));
  const news = await asked();
  expect(news.map(({ link, params }) => [link, (params["settled"] as unknown[]).length])).toEqual([
    [links[0], 300],
  ]);
});

test("if 10,000 clients request the largest view at once, as many are sent it as there is room for", async () => {
  const { publisher, asked } = aPublisher(10_000);
  publisher.offerAll();
  for (const { answer } of await asked()) answer({ stamp: 1, wants: true });
  const sent = await asked();
  const [{ params }] = sent as [(typeof sent)[number]];
  const bytes = sent.length * JSON.stringify(params).length;
  expect(bytes).toBeGreaterThan(15 * 2 ** 20);
  expect(bytes).toBeLessThanOrEqual(16 * 2 ** 20);
  for (const { answer } of sent) answer({ stamp: params["stamp"] });
  await asked();
  publisher.maintain(at(1_000));
  expect((await asked()).length).toBeGreaterThan(9_000);
});
