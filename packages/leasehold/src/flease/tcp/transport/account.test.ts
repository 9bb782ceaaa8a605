import { expect, test } from "vitest";
import { accountOf, networkOf } from "./account.js";
import { nothingAsked } from "../../../runtime/security/proof.js";
import type { Identity } from "../wire/identity.js";
import type { Role } from "../../../runtime/security/roles.js";

const peer = (role: Role, nodeId: string): Identity => ({
  role,
  nodeId,
  incarnation: "00",
  cluster: "test",
  configHash: "",
  view: 0,
  cellFunction: 0,
});

test("a client is charged by its certificate, or else by its address, under any name", () => {
  for (const name of ["a", "b"]) {
    expect(accountOf(nothingAsked, peer("client", name), "10.0.0.7:1234")).toBe("address 10.0.0.7");
    const proof = { ...nothingAsked, account: 'the certificate "CN=jobs"' };
    expect(accountOf(proof, peer("client", name), "10.0.0.7:1234")).toBe('the certificate "CN=jobs"');
  }
  expect(accountOf(nothingAsked, peer("member", "a"), "10.0.0.7:1234")).toBe("member a");
});

test.each([
  ["10.0.0.7", "10.0.0.7"],
  ["::ffff:10.0.0.7", "10.0.0.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"],
  ["2001:db8::7", "2001:db8:0:0::"],
  ["::1", "0:0:0:0::"],
  ["fe80::1%eth0", "fe80:0:0:0::"],
])("of the address %s the network %s counts", (host, network) => {
  expect(networkOf(host)).toBe(network);
});
