// Croner on every machine, each run on one of them.
import { Cron } from "croner";
import { onceInTheCluster } from "./once-in-the-cluster.mjs";
import { work } from "./work.mjs";

const report = (error) => console.error(error); // as when no majority answers
export const job = new Cron(
  process.env.SCHEDULE ?? "0 3 * * *",
  { protect: true, catch: report },
  onceInTheCluster("report", work),
);
