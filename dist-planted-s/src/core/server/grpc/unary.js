import { CoreError } from "../../state/errors.js";
import { finishInTurns } from "../turns.js";
import { asksForLeader, deadlineOf, grpcError } from "./calls.js";
import { encode, isLarge } from "./encode.js";
/** A call of one question and one answer: what it asks of the core. */
const kinds = {
    Range: "range",
    Put: "put",
    DeleteRange: "deleteRange",
    Txn: "txn",
    Compact: "compact",
    LeaseGrant: "leaseGrant",
    LeaseRevoke: "leaseRevoke",
    LeaseTimeToLive: "leaseTimeToLive",
    LeaseLeases: "leaseLeases",
    Alarm: "alarm",
};
export function unaryHandlers(host, electionMs) {
    const handlers = Object.entries(kinds).map(([method, kind]) => [method, handlerOf(host, kind, electionMs)]);
    return Object.fromEntries(handlers);
}
function handlerOf(host, kind, electionMs) {
    return (call, callback) => {
        if (asksForLeader(call) && host.status().leader === 0n) {
            callback(grpcError(new CoreError("noLeader")));
            return;
        }
        if (call.request instanceof CoreError) {
            callback(grpcError(call.request));
            return;
        }
        const request = { kind, request: call.request };
        const id = host.request(request, deadlineOf(call, electionMs), (result) => {
            if (result instanceof CoreError)
                callback(grpcError(result));
            else if (isLarge(result))
                void answerInTurns(result, callback);
            else
                callback(null, result);
        });
        call.on("cancelled", () => host.cancel(id));
    };
}
async function answerInTurns(result, callback) {
    let encoded;
    try {
        encoded = await finishInTurns(encode(result));
    }
    catch (error) {
        callback(grpcError(new CoreError("internal", error)));
        return;
    }
    callback(null, encoded);
}
