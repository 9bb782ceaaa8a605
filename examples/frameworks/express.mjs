// An Express handler that only one process at a time runs for an account. The others answer 423.
import express from "express";
import { open } from "leasehold";
import { work } from "./work.mjs";

const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400");
const app = express();

app.post("/accounts/:id", async (request, response) => {
  const name = `accounts/${request.params.id}`;
  const lease = await leases.tryAcquire(name);
  if (lease === undefined) return response.status(423).set("retry-after", "1").json({ error: "busy" });
  try {
    await work(name, lease);
    response.set("x-fencing-token", String(lease.token)).json({ lease });
  } finally {
    await lease.release();
  }
});

const server = app.listen(Number(process.env.PORT ?? 8080), () => console.log("listens"));
process.once("SIGTERM", () => server.close(() => leases.close()));
