import { LeaseholdError } from "leasehold/common";
import type { Condition } from "./call.js";
import { S3Error } from "./errors.js";

/**
 * A change whose condition fails when the change is made gets the same error as one whose condition failed
 * earlier.
 */
export async function underCondition<T>(condition: Condition, path: string, change: Promise<T>): Promise<T> {
  try {
    return await change;
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    const { code } = error;
    const isConditional = condition.ifMissing === true || condition.ifVersion !== undefined;
    if (isConditional && (code === "FILE_CHANGED" || code === "FILE_EXISTS"))
      throw new S3Error("PreconditionFailed", "the object has changed meanwhile");
    if (code === "FILE_EXISTS")
      throw new S3Error(
        "KeyConflict",
        `${JSON.stringify(path)} is a folder, or a part of it is a file: there cannot be both a and a/b`,
      );
    if (code === "FILE_CHANGED") throw new S3Error("SlowDown", "the object changes all the time");
    throw error;
  }
}
