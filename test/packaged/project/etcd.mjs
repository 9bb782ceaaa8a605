// A program whose bundle includes leases on a core: the packages of etcd's API are installed and become part
// of it.
import { LeaseholdError } from "leasehold";
import { openEtcd } from "leasehold/etcd";

openEtcd(["core://127.0.0.1:1"], { timeout: "300ms" }).catch((error) => {
  console.log(error instanceof LeaseholdError ? error.code : String(error));
});
