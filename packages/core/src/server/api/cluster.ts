import type { Ask } from "./calls/ask.js";
import type { UnaryHandlers } from "./calls/header.js";

/** etcd's Cluster service. */
export function clusterHandlers(ask: Ask): UnaryHandlers {
  return {
    MemberAdd: ask("memberAdd"),
    MemberRemove: ask("memberRemove"),
    MemberUpdate: ask("memberUpdate"),
    MemberPromote: ask("memberPromote"),
    MemberList: ask("memberList"),
  };
}
