// Node's own `require` of ES modules: 20.19 and later.
const { open } = require("leasehold");
const { MemoryCluster } = require("leasehold/testing");

async function main() {
  if (typeof MemoryCluster !== "function") throw new Error("leasehold/testing is not there");
  const { use } = require("./use.mjs");
  const leases = await open("memory:required");
  await leases.close();
  console.log(JSON.stringify(await use()));
}

void main();
