// Holds one lease until it is killed.
import { open } from "leasehold";

const { urls, resource } = JSON.parse(process.argv[2]);
// Register before opening: the parent may already have gone.
process.on("disconnect", () => process.exit());
const leases = await open(...urls, { name: "holder" });
await leases.acquire(resource);
process.send("holding");
