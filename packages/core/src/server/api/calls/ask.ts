import type { ClientRequest, Credentials } from "../../../replica/types.js";
import { CoreError, refusalFor } from "../../../state/errors.js";
import type { CoreHost, Settle } from "../../../host/host.js";
import type { Answers } from "./answers.js";
import { statusOf, type UnaryHandler } from "../../wire/rpc/call.js";
import { asksForLeader, clientOf, deadlineOf } from "./calls.js";
import type { CredentialsReader } from "./credentials.js";

/** Makes the handler of a unary call for a kind of request. */
export type Ask = (kind: ClientRequest["kind"]) => UnaryHandler;

export function asking(host: CoreHost, answers: Answers, electionMs: number, reader: CredentialsReader): Ask {
  return (kind) => handlerOf(host, kind, answers, electionMs, reader);
}

function handlerOf(
  host: CoreHost,
  kind: ClientRequest["kind"],
  answers: Answers,
  electionMs: number,
  reader: CredentialsReader,
): UnaryHandler {
  return (call, callback) => {
    const refuse = (error: CoreError) => callback(statusOf(error));
    const client = clientOf(call);
    const unread = answers.refusalFor(client);
    if (asksForLeader(call) && host.status().leader === 0n) refuse(new CoreError("noLeader"));
    // Refused while decoding (`readRequest` in `methods.ts`); everything else from there is a message.
    else if (call.request instanceof CoreError) refuse(call.request);
    else if (unread !== undefined) refuse(unread);
    else {
      const ask = (credentials: Credentials | undefined) => {
        const request = { kind, request: call.request } as ClientRequest;
        const settle: Settle = (result) => {
          if (result instanceof CoreError) refuse(result);
          else answers.send(call, result, callback);
        };
        const id = host.request(client, request, deadlineOf(call, electionMs), settle, credentials);
        call.whenOver(() => host.cancel(id));
      };
      const credentials = reader.of(call);
      if (credentials instanceof Promise)
        credentials.then(ask, (error: unknown) => refuse(refusalFor(error)));
      else ask(credentials);
    }
  };
}
