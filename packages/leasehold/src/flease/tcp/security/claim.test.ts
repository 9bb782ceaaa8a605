import { expect, it } from "vitest";
import { memberIdentity } from "../../../../../../test/support/transport.js";
import { unprovenClaim } from "../../../runtime/security/proof.js";
import type { Proof } from "../../../runtime/security/proof.js";
import { claimOf } from "./claim.js";

it("allows proven claims only", () => {
  const proof = { roles: ["client", "observer"], cluster: "test", by: "it" } as const;
  const ours = memberIdentity("b");
  const claim = (change: object, from: Proof = proof) =>
    unprovenClaim(from, claimOf(memberIdentity("x", change), ours))?.cause;
  expect(claim({ role: "client" })).toBeUndefined();
  expect(claim({ role: "observer" })).toBeUndefined();
  expect(claim({ role: "member" })).toBe("role");
  expect(claim({ role: "client", cluster: "other" })).toBe("cluster");
  expect(claim({ role: "client", cluster: "" })).toBeUndefined();
  expect(claim({ role: "client", cluster: "" }, { ...proof, cluster: "other" })).toBe("cluster");
});
