import { randomBytes } from "node:crypto";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { Authority, asText } from "../../../../../../test/support/pki.js";
import {
  clientIdentity,
  listening,
  memberIdentity,
  Participant,
  until,
  world,
} from "../../../../../../test/support/transport.js";
import type { Logger } from "../../../runtime/logger.js";
import type { SecurityOptions } from "../../../runtime/security/options.js";
import type { TlsFiles } from "../../../runtime/options.js";
import { loadCredentials } from "../../../runtime/security/load.js";

/** Credentials that change while they are in use. */

const [before, after] = [new Authority("/CN=before"), new Authority("/CN=after")];
const folder = mkdtempSync(join(tmpdir(), "leasehold-reload-"));
afterAll(() => {
  for (const path of [folder, before.folder, after.folder]) rmSync(path, { recursive: true });
});

const everyMs = 5;
const nobody = { role: undefined };

class Notes implements Logger {
  readonly lines: string[] = [];
  info(text: string): void {
    this.lines.push(`info ${text}`);
  }
  warn(text: string): void {
    this.lines.push(`warn ${text}`);
  }
  error(text: string): void {
    this.lines.push(`error ${text}`);
  }
}

/** Files that a test may overwrite. */
function copyOf(files: TlsFiles, name: string): TlsFiles {
  const copy = {
    ca: join(folder, `${name}.ca`),
    cert: join(folder, `${name}.pem`),
    key: join(folder, `${name}.key`),
  };
  overwrite(copy, files);
  return copy;
}

function overwrite(copy: TlsFiles, files: TlsFiles): void {
  for (const part of ["ca", "cert", "key"] as const) copyFileSync(files[part], copy[part]);
}

async function using(options: SecurityOptions, notes = new Notes()) {
  const credentials = await loadCredentials(options, nobody, world, notes, everyMs);
  onTestFinished(() => credentials?.close());
  return { credentials, notes };
}

async function canConnect(address: string, options: SecurityOptions): Promise<string> {
  const client = new Participant(clientIdentity("c"), { credentials: (await using(options)).credentials });
  client.transport.dial(address);
  await until(() => client.links.length + client.errors.length > 0);
  await client.transport.close();
  return client.errors[0]?.code ?? "connected";
}

const [oldClient, newClient] = [before.for("client", "test"), after.for("client", "test")];

describe("certificates", () => {
  it("that change apply to new connections, on both sides, and the old connections continue", async () => {
    const files = copyOf(before.for("member/b", "test"), "both");
    const clientFiles = copyOf(oldClient, "client");
    const { credentials, notes } = await using({ tls: files });
    const { address } = await listening(memberIdentity("b"), { credentials });
    const { credentials: clientCredentials, notes: clientNotes } = await using({ tls: clientFiles });
    const client = new Participant(clientIdentity("stays"), { credentials: clientCredentials });
    client.transport.dial(address, "b");
    await until(() => client.links.length === 1);

    overwrite(files, after.for("member/b", "test"));
    await until(() => notes.lines.some((line) => line.startsWith("info reread")));
    expect(await canConnect(address, { tls: oldClient })).toBe("UNAUTHENTICATED");
    expect(await canConnect(address, { tls: newClient })).toBe("connected");
    expect(client.links[0]!.open).toBe(true);

    overwrite(clientFiles, newClient);
    await until(() => clientNotes.lines.some((line) => line.startsWith("info reread")));
    client.links[0]!.close("to dial again");
    await until(() => client.events.filter((event) => event === "connected b").length === 2);
    expect(client.errors).toEqual([]);
  });

  it.each<[string, (files: TlsFiles) => void, RegExp]>([
    [
      "are cut short",
      (files) => writeFileSync(files.cert, "-----BEGIN CERTIFICATE-----\nMII"),
      /holds no certificate/,
    ],
    ["disappear", (files) => rmSync(files.key), /cannot read .*key.*ENOENT/],
    ["do not fit together", (files) => copyFileSync(newClient.key, files.key), /is not the key of/],
    [
      "have expired",
      (files) => overwrite(files, after.for("member/b", "test", { fromDays: -2, toDays: -1 })),
      /expired on/,
    ],
  ])(
    "that %s leave the old ones in use, with one warning, until they are repaired",
    async (_what, spoil, why) => {
      const files = copyOf(before.for("member/b", "test"), `spoilt-${randomBytes(4).toString("hex")}`);
      const { credentials, notes } = await using({ tls: files });
      const { address } = await listening(memberIdentity("b"), { credentials });
      spoil(files);
      await until(() => notes.lines.length > 0);
      expect(await canConnect(address, { tls: oldClient })).toBe("connected");
      expect(notes.lines.every((line) => line.startsWith("warn ") && why.test(line))).toBe(true);
      expect(notes.lines.length).toBeLessThanOrEqual(3);
      overwrite(files, after.for("member/b", "test"));
      await until(() => notes.lines.at(-1)!.startsWith("info reread"));
      expect(await canConnect(address, { tls: newClient })).toBe("connected");
    },
  );

  it("are no longer read after close", async () => {
    const files = copyOf(before.for("member/b", "test"), "closed");
    const { credentials, notes } = await using({ tls: files });
    credentials!.close();
    rmSync(files.cert);
    await new Promise((resolve) => {
      setTimeout(resolve, 10 * everyMs);
    });
    expect(notes.lines).toEqual([]);
  });
});

it("a changed key applies to new connections", async () => {
  const keyFile = join(folder, "cluster.key");
  const [first, second] = [randomBytes(32).toString("hex"), randomBytes(32).toString("hex")];
  writeFileSync(keyFile, first);
  const { credentials, notes } = await using({ keyFile });
  const { address } = await listening(memberIdentity("b"), { credentials });
  expect(await canConnect(address, { key: first })).toBe("connected");
  writeFileSync(keyFile, "too short");
  await until(() => notes.lines.some((line) => line.startsWith("warn")));
  expect(await canConnect(address, { key: first })).toBe("connected");
  writeFileSync(keyFile, second);
  await until(() => notes.lines.at(-1)!.startsWith("info"));
  expect(await canConnect(address, { key: first })).toBe("UNAUTHENTICATED");
  expect(await canConnect(address, { key: second })).toBe("connected");
});

it("two keys are accepted while a cluster changes from one to the other", async () => {
  const keyFile = join(folder, "changing.key");
  const [former, next] = [randomBytes(32).toString("hex"), randomBytes(32).toString("hex")];
  const both = [`${former}\n${next}\n`, `${next}\n${former}\n`];
  writeFileSync(keyFile, former);
  const { credentials, notes } = await using({ keyFile });
  const { address } = await listening(memberIdentity("b"), { credentials });
  for (const [index, content] of both.entries()) {
    writeFileSync(keyFile, content);
    await until(() => notes.lines.length === index + 1);
    for (const key of [former, next, ...both]) expect(await canConnect(address, { key })).toBe("connected");
  }
  writeFileSync(keyFile, next);
  await until(() => notes.lines.length === 3);
  expect(await canConnect(address, { key: former })).toBe("UNAUTHENTICATED");
  for (const key of [next, both[1]!]) expect(await canConnect(address, { key })).toBe("connected");
});

describe("unusable credentials are refused at the start", () => {
  const member = { role: "member", memberId: "b", cluster: "test" } as const;
  it.each<[string, () => SecurityOptions, RegExp]>([
    ["another member's", () => ({ tls: before.for("member/a", "test") }), /member "a" and not for "b"/],
    [
      "another cluster's",
      () => ({ tls: before.for("member/b", "other") }),
      /cluster "other" and not for "test"/,
    ],
    ["a client's", () => ({ tls: oldClient }), /does not allow to be a member/],
    ["expired", () => ({ tls: before.for("member/b", "test", { fromDays: -2, toDays: -1 }) }), /expired on/],
    [
      "no authority's ca",
      () => ({ tls: { ...before.for("member/b", "test"), ca: oldClient.cert } }),
      /no authority/,
    ],
    [
      "another's key",
      () => ({ tls: { ...asText(before.for("member/b", "test")), key: oldClient.key } }),
      /is not the key of tls\.cert/,
    ],
    [
      "an authority's own",
      () => ({ tls: { ca: before.caFile, cert: before.caFile, key: join(before.folder, "ca.key") } }),
      /proves nothing/,
    ],
    ["a missing file", () => ({ keyFile: join(folder, "none") }), /cannot read .*none/],
    [
      "a client's key",
      () => ({ key: `client: ${randomBytes(32).toString("hex")}` }),
      /no key that allows to be a member/,
    ],
    ["a key and certificates", () => ({ key: randomBytes(32).toString("hex"), tls: oldClient }), /only one/],
  ])("%s", async (_what, options, message) => {
    await expect(loadCredentials(options(), member, world, new Notes())).rejects.toMatchObject({
      code: "INVALID_CONFIG",
      message: expect.stringMatching(message),
    });
  });
});
