import { use } from "./use.mjs";

use().then((outcome) => console.log(JSON.stringify(outcome)));
