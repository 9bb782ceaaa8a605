import { LeaseholdError } from "leasehold/common";

/** A change of a file of which nobody can say whether it was done: `FILE_UNCERTAIN`. */
export class FileUncertainError extends LeaseholdError {
  /**
   * True: the file's primary has given up, so what is called from now on and succeeds finds the change done,
   * or it never will be. False: the primary has not been heard of in time, or not been waited for, and may
   * still do it later.
   */
  readonly isSettledByNext: boolean;

  constructor(message: string, isSettledByNext: boolean, options?: ErrorOptions) {
    super("FILE_UNCERTAIN", message, options);
    this.name = "FileUncertainError";
    this.isSettledByNext = isSettledByNext;
  }
}
