import { open } from "node:fs/promises";
import { LeaseholdError } from "../../lease/errors.js";
/** Makes new, renamed and removed names of a folder survive a loss of power. */
export async function syncFolder(path) {
    const folder = await open(path, "r");
    try {
        await folder.sync();
    }
    finally {
        await folder.close();
    }
}
/** What the disk refused, as an error that says what that means. */
export function diskError(what, cause) {
    const { code, message } = cause;
    const why = code === "ENOSPC" || code === "EDQUOT" ? "the disk is full" : (message ?? String(cause));
    const text = `${what}: ${why}. The server stops: it cannot tell any more what is on disk; all that it has acknowledged is`;
    return new LeaseholdError("DISK_FAILED", text, { cause });
}
