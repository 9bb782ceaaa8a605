import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  longAddresses,
  longHost,
  longIds,
  longZone,
  largestView,
} from "../../../../../test/support/large-views.js";
import { benchSettings } from "../../../../../test/support/flease-bench.js";
import { isAddress, readAddress } from "../../runtime/address.js";
import { memberIdLengthMax, memberIdsMax, membersMax } from "../protocol/settings.js";
import { defineCluster, readClusterDocument, writeClusterDocument } from "./cluster.js";
import { ViewFile } from "./views/view-file.js";
import { readPublishedView, readViewOffer, writePublishedView, writeViewOffer } from "../views/document.js";
import { decodeCall, encodeAnswer, encodeCall } from "./wire/admin-frames.js";
import { ByteReader, ByteWriter } from "./wire/bytes.js";
import { CALL_FRAME_BYTES_MAX, FrameDecoder, FrameKind, MEMBER_CALL_FRAME_BYTES_MAX } from "./wire/frame.js";
import { WELCOME_FRAME_BYTES_MAX } from "./wire/frame.js";
import {
  decodeWelcome,
  encodeWelcome,
  NONCE_BYTES,
  PUBLIC_KEY_BYTES,
  SIGNATURE_BYTES,
} from "./wire/hello.js";
import { callBytesMax } from "./transport/link.js";

/** Every bound on views, at its greatest value and one above. */

const largest = largestView();

/** The parameters of a CALL on arrival, or the reason why they did not arrive. */
function called(params: object, role: "member" | "client"): unknown {
  const to = new ByteWriter(16);
  if (!encodeCall(to, { id: 1, method: "view", params }, callBytesMax(role))) return "too large";
  let arrived: unknown;
  const decoder = new FrameDecoder((_kind, bytes, start, end) => {
    const from = new ByteReader();
    from.reset(bytes, start, end);
    arrived = decodeCall(from).params;
  });
  decoder.allow(FrameKind.call, callBytesMax(role));
  for (let at = 0; at < to.length; at += 65_536)
    decoder.push(Buffer.from(to.bytes.subarray(at, to.length)), Math.min(65_536, to.length - at));
  return arrived;
}

test("the largest view reaches members and clients intact, and survives a member's file", () => {
  const document = writePublishedView(largest);
  const bytes = JSON.stringify(document).length;
  expect(bytes).toBeGreaterThan(150_000);
  expect(readPublishedView(called({ ...document, begins: true }, "member"), isAddress)).toEqual(largest);
  expect(called(document, "client")).toBe("too large");
  const offer = called(writeViewOffer(largest), "member");
  expect(readViewOffer(offer, largest.view)?.settled).toEqual(largest.settled);
  const folder = mkdtempSync(join(tmpdir(), "leasehold-views-"));
  try {
    const file = new ViewFile(join(folder, "view.json"));
    file.write(largest);
    expect(file.read()).toMatchObject({ view: largest.view, barrier: largest.barrier });
    expect(file.read()?.addresses).toEqual(largest.addresses);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the description of a cluster whose founding members all differ and have the longest names reaches a client", () => {
  const members = longIds("f");
  const settings = benchSettings({ members, cellSize: 31 });
  const cluster = defineCluster("c".repeat(128), settings, longAddresses(members));
  const text = writeClusterDocument(cluster, writePublishedView(largest));
  const claims = {
    role: "member",
    nodeId: members[0]!,
    cluster: cluster.name,
    configHash: cluster.configHash,
    view: 1,
    cellFunction: 1,
  } as const;
  const introduction = {
    claims,
    publicKey: Buffer.alloc(PUBLIC_KEY_BYTES),
    nonce: Buffer.alloc(NONCE_BYTES),
  };
  const to = new ByteWriter(16);
  encodeWelcome(to, introduction, text, () => Buffer.alloc(SIGNATURE_BYTES));
  expect(to.length).toBeGreaterThan(250_000);
  const arrived: string[] = [];
  const decoder = new FrameDecoder((_kind, bytes, start, end) => {
    const from = new ByteReader();
    from.reset(bytes, start, end);
    const welcome = decodeWelcome(from);
    if (welcome.identity !== undefined) arrived.push(welcome.clusterDocument);
  });
  decoder.allow(FrameKind.welcome, WELCOME_FRAME_BYTES_MAX);
  decoder.push(Buffer.from(to.bytes.subarray(0, to.length)));
  expect(arrived).toEqual([text]);
  expect(readClusterDocument(text).current?.view).toEqual(largest.view);
});

test("an announcement of the most possible connections fits, and so does the list of members", () => {
  const known = longIds("k", 2 * memberIdsMax);
  const connected = Object.fromEntries(known.map((id) => [id, "0".repeat(32)]));
  expect(called({ connected, before: "0".repeat(32) }, "member")).toMatchObject({ connected });
  const { view, addresses } = largest;
  const joint = { before: view.before!.members, unsettled: view.before!.members, waitMs: 1e15 / 3 };
  const value = { number: view.number, members: addresses, cellSize: 31, joint };
  encodeAnswer(new ByteWriter(16), { id: 1, value });
});

test("one member more, or one character more in an id or an address, is refused", () => {
  const { view, addresses } = largest;
  expect(readAddress(`${longHost}:1`)?.host).toHaveLength(254);
  expect(readAddress(`${longZone}:1`)?.host).toHaveLength(254);
  expect([readAddress(`x${longHost}:1`), readAddress(`${longZone.replace("z", "zz")}:1`)]).toEqual([
    undefined,
    undefined,
  ]);
  const [first] = view.members as [string];
  const refused = (members: readonly string[], at: Record<string, string>) => () =>
    readPublishedView(
      writePublishedView({ ...largest, view: { ...view, members }, addresses: at }),
      isAddress,
    );
  expect(refused(view.members, addresses)).not.toThrow();
  const more = "o".repeat(memberIdLengthMax);
  expect(refused([...view.members, more], { ...addresses, [more]: "h:1" })).toThrow("members cannot be read");
  const longer = `${first}x`;
  expect(refused([longer, ...view.members.slice(1)], { ...addresses, [longer]: "h:1" })).toThrow(
    "members cannot be read",
  );
  expect(refused(view.members, { ...addresses, [first]: `x${longHost}:1` })).toThrow(
    "members cannot be read",
  );
  const tooMany = longIds("m", membersMax + 1);
  expect(() => benchSettings({ members: tooMany, cellSize: 31 })).toThrow("at most 300 members");
});

test("a frame one byte above its sender's bound is refused at its head", () => {
  const refuses = (kind: FrameKind, length: number, allowed?: number) => {
    const decoder = new FrameDecoder(() => undefined);
    if (allowed !== undefined) decoder.allow(kind, allowed);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(length);
    head[4] = kind;
    try {
      decoder.push(head);
      return false;
    } catch {
      return true;
    }
  };
  for (const [kind, most, allowed] of [
    [FrameKind.call, CALL_FRAME_BYTES_MAX, callBytesMax("client")],
    [FrameKind.call, MEMBER_CALL_FRAME_BYTES_MAX, callBytesMax("member")],
    [FrameKind.welcome, WELCOME_FRAME_BYTES_MAX, WELCOME_FRAME_BYTES_MAX],
    [FrameKind.welcome, 65_536, undefined],
  ] as const)
    expect([kind, refuses(kind, most, allowed), refuses(kind, most + 1, allowed)]).toEqual([
      kind,
      false,
      true,
    ]);
});
