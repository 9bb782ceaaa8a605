import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { Kind, LeaseState, Message, Refusal } from "../../protocol/message.js";
import { ByteWriter } from "./bytes.js";
import { counterNames } from "../transport/counters.js";
import {
  ANSWER_FRAME_BYTES_MAX,
  BATCH_FRAME_BYTES_MAX,
  CALL_FRAME_BYTES_MAX,
  FrameKind,
  HANDSHAKE_FRAME_BYTES_MAX,
  MEMBER_CALL_FRAME_BYTES_MAX,
  WELCOME_FRAME_BYTES_MAX,
} from "./frame.js";
import { CLUSTER_DOCUMENT_BYTES_MAX, encodeHello, PROTOCOL_VERSION, RejectCode, RoleCode } from "./hello.js";
import { Outbox } from "../transport/outbox.js";
import { roles } from "../../../runtime/security/roles.js";

/**
 * Checks the documentation against the code: an implementation written from the documentation alone has to
 * work.
 */
const pageOf = (name: string) =>
  readFileSync(new URL(`../../../../../../docs/internals/${name}`, import.meta.url), "utf8");
const text = ["wire.md", "wire-calls.md"].map(pageOf).join("\n");
const examples = pageOf("wire-examples.txt");

/** The bytes of an annotated dump; each line must begin where the one before it ended. */
function dump(name: string): string {
  const block = new RegExp(`^${name}: .*\n\n((?:.+\n)+)`, "m").exec(examples)?.[1] ?? "";
  let hex = "";
  for (const line of block.trim().split("\n")) {
    const [, offset, bytes] = /^([0-9a-f]{4}) {2}((?:[0-9a-f]{2} )+) +\S/.exec(line) ?? [];
    expect(`${offset} in ${line}`).toBe(`${(hex.length / 2).toString(16).padStart(4, "0")} in ${line}`);
    hex += bytes!.replaceAll(" ", "");
  }
  return hex;
}

/** The cells of the table rows that contain the text. */
function rows(cells: RegExp): string[][] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("|") && cells.test(line))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

it("shows a HELLO as it is sent", () => {
  const writer = new ByteWriter(8);
  encodeHello(writer, {
    claims: {
      role: "member",
      nodeId: "n1",
      cluster: "demo",
      configHash: "00112233445566778899aabbccddeeff",
      view: 1,
      cellFunction: 0,
    },
    publicKey: Buffer.from("0123456789abcdef".repeat(4), "hex"),
    nonce: Buffer.from("fedcba9876543210".repeat(4), "hex"),
  });
  expect(dump("hello")).toBe(writer.bytes.toString("hex", 0, writer.length));
});

it("shows a BATCH as it is sent", () => {
  const request = Object.assign(new Message(), {
    kind: Kind.acquire,
    view: 1,
    instance: 7,
    resource: "jobs/a",
    number: 4_096_000_000,
    until: 1_700_000_015_000.5,
    duration: 15_000,
  });
  const refusal = Object.assign(new Message(), {
    kind: Kind.nack,
    view: 1,
    instance: 3,
    number: 4_095_995_904,
    refusal: Refusal.held,
    promised: 4_095_991_808,
    leaseState: LeaseState.live,
    leaseOwner: `n2.${"fedcba9876543210".repeat(2)}`,
    leaseNumber: 4_095_991_808,
    leaseSequence: 2,
    leaseExpiresWallMs: 1_700_000_009_000,
    leaseToken: 4_095_959_040,
  });
  const outbox = new Outbox();
  outbox.add(request);
  outbox.add(refusal);
  const { bytes, length } = outbox.take(
    { monoMs: 5000.25, loMs: 1_700_000_000_000, hiMs: 1_700_000_000_001 },
    { monoMs: 4000, loMs: 1_699_999_999_000, heldMs: 0.5, roundTripMs: -1 },
  );
  expect(dump("batch")).toBe(bytes.toString("hex", 0, length));
});

it("names every kind, reason, refusal, state, bound and counter", () => {
  expect(text).toContain(`Version ${PROTOCOL_VERSION}.`);
  const longest = {
    hello: HANDSHAKE_FRAME_BYTES_MAX,
    welcome: WELCOME_FRAME_BYTES_MAX,
    reject: HANDSHAKE_FRAME_BYTES_MAX,
    batch: BATCH_FRAME_BYTES_MAX,
    call: CALL_FRAME_BYTES_MAX,
    answer: ANSWER_FRAME_BYTES_MAX,
    proof: HANDSHAKE_FRAME_BYTES_MAX,
  };
  expect(rows(/^\| \d \| [A-Z]+ \| [\d,]+ \|/).map((cells) => cells.slice(0, 3))).toEqual(
    Object.entries(FrameKind).map(([name, kind]) => [
      String(kind),
      name.toUpperCase(),
      longest[name as keyof typeof longest].toLocaleString("en"),
    ]),
  );
  expect(text).toContain(`of a member up to ${MEMBER_CALL_FRAME_BYTES_MAX.toLocaleString("en")} |`);
  expect(text).toContain(`JSON, at most ${CLUSTER_DOCUMENT_BYTES_MAX.toLocaleString("en")} bytes`);
  expect(rows(/^\| \d+ \| `\w+` \|/).map(([code, name]) => [name, code])).toEqual(
    Object.entries(RejectCode).map(([name, code]) => [`\`${name}\``, String(code)]),
  );
  expect(rows(/^\| \d+ \| [A-Z]+ \| re/).map(([code, name]) => [name, code])).toEqual(
    Object.entries(Kind).map(([name, code]) => [name.toUpperCase(), String(code)]),
  );
  expect(text).toContain(
    `role, ${roles
      .map((role) => `${RoleCode[role]} ${role}`)
      .join(", ")
      .replace(/, (?=\d \w+$)/, " or ")}.`,
  );
  const list = (codes: object) =>
    Object.entries(codes)
      .map(([name, code]) => `${code} ${name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)}`)
      .join(", ");
  const flowing = text.replaceAll("\n", " ");
  expect(flowing).toContain(`Refusals: ${list(Refusal)}.`);
  expect(flowing).toContain(`States of a lease: ${list(LeaseState)}.`);
  const groups = rows(/^\| `[a-z]+(?:\.[a-z]+)?` \|/).map(([group, counters]) => ({
    group: group!.replaceAll("`", ""),
    counters: [...counters!.matchAll(/`([\w.]+)`/g)].map((match) => match[1]),
  }));
  expect(
    groups.flatMap(({ group, counters }) =>
      counters.length === 0 ? group : counters.map((name) => `${group}.${name}`),
    ),
  ).toEqual(counterNames);
});

it("names every call that is answered", () => {
  const sources = ["../../admin/admin-rpc.ts", "../served-calls.ts", "../views/node-views.ts"].map((name) =>
    readFileSync(new URL(name, import.meta.url), "utf8"),
  );
  const answered = sources.flatMap((source) =>
    [...source.matchAll(/(?:case|method ===) "(\w+)"/g)].map((match) => match[1]),
  );
  const named = rows(/^\| CALL `\w+` \|/).map(([call]) => /`(\w+)`/.exec(call!)?.[1]);
  expect(named.toSorted()).toEqual(answered.toSorted());
});
