/**
 * A process that is a node of replicated files and a member of the lease cluster. It carries out the calls it
 * is sent, and answers each.
 */
import { performance } from "node:perf_hooks";

const { startMember } = await import("leasehold");
const { openBlockDirectory, serveWebdav, startFiles } = await import("@leasehold/files");

const { node, members, nodes, folder, ttl, http } = JSON.parse(process.argv[2]);
const member = await startMember({
  id: node,
  listen: members[node],
  members,
  ttlMax: ttl,
  maxClockSkew: "100ms",
});
const store = await openBlockDirectory(folder);
const files = await startFiles({
  node,
  nodes,
  leases: member.leases,
  store,
  blockSize: 4_096,
  ttl,
  timeout: "6s",
  scrubPause: "20ms",
});

if (http !== undefined) await serveWebdav(files, member.leases, { port: http });

const operations = {
  create: async ({ path }) => (await files.open(path, { create: "missing" })).path,
  read: async ({ path, offset, length }) => {
    const file = await files.open(path);
    return Buffer.from(await file.read(offset, length)).toString("latin1");
  },
  write: async ({ path, offset, text }) => {
    const file = await files.open(path);
    await file.write(offset, Buffer.from(text, "latin1"));
  },
  sync: async ({ path }) => (await files.open(path)).sync(),
  status: async () => files.status(),
};

process.on("message", async ({ id, kind, ...order }) => {
  try {
    const result = await operations[kind](order);
    process.send({ id, result: result ?? null });
  } catch (error) {
    process.send({ id, error: error.code ?? String(error) });
  }
});
process.send({ ready: performance.now() });
