/** An acceptor's memory of one resource. The lease counts only while `leaseOwner` is not empty. */
export interface Entry {
  promisedNumber: number;
  promisedOwner: string;
  leaseOwner: string;
  leaseNumber: number;
  leaseSequence: number;
  /** The lease's end on the wall clock, as its owner wrote it. */
  leaseExpiresWallMs: number;
  /** Its end on this acceptor's steady clock. */
  leaseExpiresMonoMs: number;
  released: boolean;
  /** The tenure's fencing token as its owner reported it; returned to queries, never decided on. */
  token: number;
  /**
   * The owner whose lease was broken: all requests of that owner are refused until the entry is discarded
   * (3.13). Empty: no bar.
   */
  barredOwner: string;
  /** The payer, by its number in `Quotas`; 0: none. */
  payer: number;
}

/** Creates an empty record to be filled in. */
export function clearEntry(entry: Entry): Entry {
  entry.promisedNumber = 0;
  entry.promisedOwner = "";
  entry.leaseOwner = "";
  entry.leaseNumber = 0;
  entry.leaseSequence = 0;
  entry.leaseExpiresWallMs = 0;
  entry.leaseExpiresMonoMs = 0;
  entry.released = false;
  entry.token = 0;
  entry.barredOwner = "";
  entry.payer = 0;
  return entry;
}

export function emptyEntry(): Entry {
  return {
    promisedNumber: 0,
    promisedOwner: "",
    leaseOwner: "",
    leaseNumber: 0,
    leaseSequence: 0,
    leaseExpiresWallMs: 0,
    leaseExpiresMonoMs: 0,
    released: false,
    token: 0,
    barredOwner: "",
    payer: 0,
  };
}
