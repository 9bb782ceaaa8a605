// node-cron on every machine; each run happens on one of them.
import cron from "node-cron";
import { onceInTheCluster } from "./once-in-the-cluster.mjs";
import { work } from "./work.mjs";

cron.schedule(process.env.SCHEDULE ?? "0 3 * * *", onceInTheCluster("cleanup", work), { noOverlap: true });
