import { unwatchAbort, watchAbort } from "./abort-watch.js";
import { LeaseLostError } from "./errors.js";
/** Campaigns, leads and campaigns again; see `Leases.lead`. `campaign` waits for the lease, however long, until `signal` aborts. */
export async function lead(campaign, work, signal) {
    while (!isAborted(signal)) {
        let lease;
        try {
            lease = await campaign();
        }
        catch (error) {
            if (isAborted(signal))
                return undefined;
            throw error;
        }
        const term = await serve(lease, work, signal);
        if (term.stepsDown)
            return term.value;
    }
    return undefined;
}
/** One tenure. The lease stays held until the work has settled, unless it is lost before. */
async function serve(lease, work, signal) {
    const resign = () => lease.resign(signal?.reason);
    lease.isLeading = true;
    if (isAborted(signal))
        resign();
    else if (signal !== undefined)
        watchAbort(signal, resign);
    try {
        const value = await work(lease);
        return isAborted(signal) || isLost(lease) ? { stepsDown: false } : { stepsDown: true, value };
    }
    catch (error) {
        if (isAnswer(error, lease, signal))
            return { stepsDown: false };
        throw error;
    }
    finally {
        if (signal !== undefined)
            unwatchAbort(signal, resign);
        await lease.release();
    }
}
function isLost(lease) {
    const reason = lease.ended;
    return reason !== undefined && reason !== "released";
}
/** The work stopped because it was told to, by a signal or by `assertHeld`: no failure of its own. */
function isAnswer(error, lease, signal) {
    if (error instanceof LeaseLostError && error.resource === lease.resource)
        return error.reason !== "released";
    const toldToStop = isAborted(signal) || (lease.signal.aborted && lease.ended !== "released");
    if (!toldToStop)
        return false;
    if (error === lease.signal.reason || error === signal?.reason)
        return true;
    return error instanceof Error && error.name === "AbortError";
}
/** A function, because the compiler takes a property that it has seen to be false for false ever after. */
function isAborted(signal) {
    return signal?.aborted === true;
}
