// A request handler that handles one request at a time for each account, on any number of servers. Its
// replies have the token as text, in a header and in JSON.
//
//   node http-handler.mjs & curl -i -X POST http://127.0.0.1:8080/accounts/7
import { createServer } from "node:http";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { open } from "leasehold";

const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400");

const server = createServer((request, response) => {
  handle(request, response).catch((error) => reply(response, 500, { error: String(error) }));
});
server.listen(Number(process.env.PORT ?? 8080), "127.0.0.1");
await once(server, "listening");
console.log(`http://127.0.0.1:${server.address().port}`);

process.once("SIGTERM", async () => {
  server.close(); // accepts no more requests, and closes when those in flight have ended
  await once(server, "close");
  await leases.close();
});

async function handle(request, response) {
  const name = request.url.slice(1); // accounts/7
  const lease = await leases.tryAcquire(name);
  if (lease === undefined) {
    const holder = await leases.holder(name);
    return reply(response, 423, { error: "another request is at it", holder }, { "retry-after": "1" });
  }
  try {
    lease.assertHeld(500);
    await sleep(Number(process.env.WORK_MS ?? 50)); // the work: pass on lease.token and lease.signal
    reply(response, 200, { lease }, { "x-fencing-token": String(lease.token) });
  } finally {
    await lease.release();
  }
}

function reply(response, status, body, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body)); // leases and hints serialize their tokens as text
}
