import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { ClientDuplexStream } from "@grpc/grpc-js";

/** A method of a service as the generated code describes it. */
export interface Method<Input extends DescMessage, Output extends DescMessage> {
  readonly name: string;
  readonly parent: { readonly typeName: string };
  readonly input: Input;
  readonly output: Output;
}

/** A stream of messages in both directions, as far as it is used. */
export type Duplex<Request, Answer> = Pick<
  ClientDuplexStream<Request, Answer>,
  "cancel" | "on" | "removeAllListeners" | "write"
>;

/**
 * The way to one server of a core. `token` is what a user has shown itself with, if the core has users.
 */
export interface Connection {
  /** What is sent now reaches the server, as far as it is known. */
  readonly isReady: boolean;
  /** Rejects with a `ServiceError`, also when no answer has come for so long. */
  ask<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    request: MessageShape<Input>,
    token: string | undefined,
    timeoutMs: number,
  ): Promise<MessageShape<Output>>;
  open<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    token: string | undefined,
  ): Duplex<MessageShape<Input>, MessageShape<Output>>;
  close(): void;
}

/** Makes the way to the server at this address; nothing is sent yet. */
export type Connect = (endpoint: string) => Connection;
