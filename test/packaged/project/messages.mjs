// Prints the errors for features that cannot work in a bundle.
import { open } from "leasehold";

const say = (error) => console.log(error.message);

open("core://127.0.0.1:1")
  .catch(say)
  .then(() => open("delta+redis://127.0.0.1:1"))
  .catch(say);
