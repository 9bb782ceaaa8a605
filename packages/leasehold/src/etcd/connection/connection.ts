import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { ClientDuplexStream } from "@grpc/grpc-js";

/** A method of a service as the generated code describes it. */
export interface Method<Input extends DescMessage, Output extends DescMessage> {
  readonly name: string;
  readonly parent: { readonly typeName: string };
  readonly input: Input;
  readonly output: Output;
}

/** The part of a bidirectional stream that is used here. */
export type Duplex<Request, Answer> = Pick<
  ClientDuplexStream<Request, Answer>,
  "cancel" | "on" | "removeAllListeners" | "write"
>;

/**
 * A connection to one server of a core. `token` is the user's authentication token, if the core has users.
 */
export interface Connection {
  /** Whether the connection is established, as far as is known. */
  readonly isReady: boolean;
  /** Rejects with a `ServiceError`, also after the timeout. */
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

/** Creates a connection to this address, but sends nothing yet. */
export type Connect = (endpoint: string) => Connection;
