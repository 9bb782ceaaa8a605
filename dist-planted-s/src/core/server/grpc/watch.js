import { CoreError } from "../../state/errors.js";
import { fail } from "./calls.js";
/**
 * Responses of one stream that its connection has not taken: no more requests are read, as each is answered, too. Above what the core
 * hands out of changes by itself.
 */
const unsentMax = 1_024;
/**
 * A stream of watches. What its client does not take in waits here up to the bound of the core (`watchResponsesMax`), as it hears
 * of each response only when the connection has taken it; the rest waits in history.
 */
export function watchHandler(host, streams) {
    return (stream) => {
        if (!streams.admit(stream))
            return;
        let unsent = 0;
        const number = host.openWatches((response) => {
            if (response instanceof CoreError) {
                fail(stream, response);
                return;
            }
            unsent += 1;
            if (unsent === unsentMax)
                stream.pause();
            stream.write(response, () => {
                unsent -= 1;
                if (unsent === unsentMax - 1)
                    stream.resume();
                host.watchSent(number, 1);
            });
        });
        const over = () => host.closeWatches(number);
        stream.on("data", (request) => host.watch(number, request));
        stream.once("cancelled", over).once("error", over).once("close", over);
        // A client that says nothing more wants to hear nothing more, either.
        stream.once("end", () => {
            over();
            stream.end();
        });
    };
}
