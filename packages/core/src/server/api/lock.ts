import { create } from "@bufbuild/protobuf";
import {
  type LockRequest,
  LockResponseSchema,
  type UnlockRequest,
  UnlockResponseSchema,
} from "leasehold/etcd/gen/etcd/v3lock_pb.js";
import type { UnaryHandlers } from "./calls/header.js";
import type { LocalClient } from "./calls/local.js";
import { recipe } from "./recipes/recipes.js";

const lost = "mutex: session is expired";

/** etcd's Lock service. */
export function lockHandlers(client: LocalClient): UnaryHandlers {
  return {
    Lock: recipe(client, async ({ lease, name }: LockRequest, { queue: queueOf, signal }) => {
      const queue = queueOf(name);
      const place = await queue.take(lease, new Uint8Array());
      try {
        const header = await queue.untilFirst(place, lost, signal);
        return create(LockResponseSchema, { header, key: place.key });
      } catch (error) {
        await queue.leave(place);
        throw error;
      }
    }),
    Unlock: recipe(client, async ({ key }: UnlockRequest, { queue }) => {
      const header = await queue(key).remove(key);
      return create(UnlockResponseSchema, { header });
    }),
  };
}
