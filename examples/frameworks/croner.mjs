// Croner on every machine; each run happens on one of them.
import { Cron } from "croner";
import { onceInTheCluster } from "./once-in-the-cluster.mjs";
import { work } from "./work.mjs";

const report = (error) => console.error(error); // for example when no majority answers
export const job = new Cron(
  process.env.SCHEDULE ?? "0 3 * * *",
  { protect: true, catch: report },
  onceInTheCluster("report", work),
);
