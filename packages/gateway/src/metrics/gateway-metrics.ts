import type { Recorder } from "leasehold/metrics";
import type { EndCause } from "../sessions/sessions.js";
import type { gatewayCatalogue } from "./catalogue.js";

/** The current use of a gateway. */
export interface Use {
  readonly sessions: number;
  readonly watches: number;
  /** The used share of each limit. */
  readonly quotas: Readonly<Record<string, number>>;
}

/** The metrics of one gateway. */
export class GatewayMetrics {
  readonly #recorder: Recorder<typeof gatewayCatalogue>;

  constructor(recorder: Recorder<typeof gatewayCatalogue>) {
    this.#recorder = recorder;
  }

  /** @param route of the route table, never the path that the client sent */
  answered(route: string, status: number | "cut", tookMs: number): void {
    const labels = [route, outcomeOf(status)] as const;
    this.#recorder.observe("leasehold_gateway_request_duration", labels, tookMs / 1_000);
  }

  /** @param reason one of a fixed set of words */
  refused(reason: string): void {
    this.#recorder.add("leasehold_gateway_refusals", [reason.toLowerCase()]);
  }

  sessionEnded(cause: EndCause): void {
    this.#recorder.add("leasehold_gateway_sessions_ended", [cause]);
  }

  /** Reads the use at each scrape. Returns a function that ends it. */
  watch(use: () => Use): () => void {
    return this.#recorder.beforeRead(() => {
      const { sessions, watches, quotas } = use();
      this.#recorder.set("leasehold_gateway_sessions", [], sessions);
      this.#recorder.set("leasehold_gateway_watches", [], watches);
      for (const [quota, used] of Object.entries(quotas))
        this.#recorder.set("leasehold_gateway_quota_used", [quota], used);
    });
  }
}

function outcomeOf(status: number | "cut"): string {
  if (status === "cut") return "cut";
  if (status === 202) return "waiting";
  return status < 400 ? "ok" : status < 500 ? "refused" : "failed";
}
