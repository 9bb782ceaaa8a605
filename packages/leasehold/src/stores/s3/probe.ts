import { randomBytes } from "node:crypto";
import { sameBytes } from "../../delta/record/envelope.js";
import type { ProbeFinding } from "../common/contract.js";
import { type S3Answer, S3Refusal } from "./client.js";
import type { S3Object, S3Objects } from "./objects.js";

/** The number of races with a winner; a race without one is inconclusive and repeated. */
const racesWanted = 3;
const racesMax = 12;

/** An entity tag that no object has. */
const foreignEtag = '"00000000000000000000000000000000"';

/**
 * Proves on temporary objects that the server honours conditions of writes. Servers that ignore them write
 * anyway and report success. It checks the objects afterwards, not the server's answers. It also determines
 * the form of entity tags.
 */
export async function probeConditions(objects: S3Objects): Promise<readonly ProbeFinding[]> {
  const probe = new ConditionProbe(objects);
  try {
    await probe.run();
  } finally {
    await probe.cleanUp();
  }
  return probe.findings;
}

class ConditionProbe {
  readonly findings: ProbeFinding[] = [];
  readonly #objects: S3Objects;
  readonly #keys = new Set<string>();

  constructor(objects: S3Objects) {
    this.#objects = objects;
  }

  async run(): Promise<void> {
    const key = this.#newKey();
    const first = await this.#write(key);
    if (first === undefined) return;
    await this.#mustRefuse("created an object that exists (If-None-Match: *)", key, first, { absent: true });
    if (this.#isUnfit()) return;
    const second = await this.#settleForm(key, first);
    if (second === undefined) return;
    await this.#mustRefuse("replaced an object under a tag that it never had (If-Match)", key, second, {
      etag: foreignEtag,
    });
    await this.#mustRefuse("replaced an object under the tag that it had before (If-Match)", key, second, {
      etag: first.etag,
    });
    if (this.#isUnfit()) return;
    await this.#race("created one object twice at the same time", async () => [this.#newKey(), undefined]);
    await this.#race("replaced one object twice at the same time", async () => [
      key,
      await this.#objects.get(key),
    ]);
  }

  /** Deleting may not be allowed; leftovers are small objects whose content explains them. */
  async cleanUp(): Promise<void> {
    await Promise.allSettled([...this.#keys].map((key) => this.#objects.remove(key)));
  }

  async #write(key: string): Promise<S3Object | undefined> {
    const content = newContent();
    const answer = await this.#objects.put(key, content, { absent: true });
    if (!answer.ok) throw new S3Refusal(answer);
    const object = await this.#objects.get(key);
    const isRight = object !== undefined && sameBytes(object.content, content);
    this.#note("wrote an object and read it", isRight ? "what was written" : "something else", isRight);
    return isRight ? object : undefined;
  }

  async #mustRefuse(
    tried: string,
    key: string,
    before: S3Object,
    condition: { absent: true } | { etag: string },
  ): Promise<void> {
    const answer = await this.#objects.put(key, newContent(), condition);
    const now = await this.#objects.get(key);
    const isUntouched = now !== undefined && sameBytes(now.content, before.content);
    const seen = isUntouched
      ? answer.ok
        ? "it was reported as written"
        : "it was refused"
      : "it was overwritten";
    this.#note(tried, `${seen} (${answer.status})`, isUntouched && !answer.ok);
  }

  /** Replaces the object with the correct tag, in either form. */
  async #settleForm(key: string, before: S3Object): Promise<S3Object | undefined> {
    const tried = "replaced an object under the right tag (If-Match)";
    const statuses: number[] = [];
    for (const form of ["quoted", "bare"] as const) {
      this.#objects.etagForm = form;
      const content = newContent();
      const answer = await this.#objects.put(key, content, { etag: before.etag });
      statuses.push(answer.status);
      const now = await this.#objects.get(key);
      if (!answer.ok || now === undefined || !sameBytes(now.content, content)) continue;
      this.#note(tried, `it was written (${form} tags)`, true);
      return now;
    }
    this.#note(tried, `it was refused with and without quotes (${statuses.join(", ")})`, false);
    return undefined;
  }

  /**
   * Of two concurrent writes one succeeds and is acknowledged; the other is refused or fails, for example
   * with 500.
   */
  async #race(tried: string, prepare: () => Promise<[string, S3Object | undefined]>): Promise<void> {
    const losers = new Set<number>();
    for (let races = 0, won = 0; won < racesWanted; races += 1) {
      if (races === racesMax) return this.#note(tried, `nobody won in ${racesMax} races`, false);
      const [key, before] = await prepare();
      const condition = before === undefined ? ({ absent: true } as const) : { etag: before.etag };
      const contents = [newContent(), newContent()];
      const answers = await Promise.all(
        contents.map((content) => this.#objects.put(key, content, condition)),
      );
      const winners = contents.filter((_, index) => answers[index]!.ok);
      const now = await this.#objects.get(key);
      if (winners.length > 1) return this.#note(tried, "both were acknowledged", false);
      for (const { status } of answers.filter((answer: S3Answer) => !answer.ok)) losers.add(status);
      if (winners.length === 0) continue;
      if (now === undefined || !sameBytes(now.content, winners[0]!))
        return this.#note(tried, "the acknowledged write is not there", false);
      won += 1;
    }
    this.#note(tried, `one was written, the other refused (${[...losers].join(", ")})`, true);
  }

  #newKey(): string {
    const key = `.leasehold-probe-${randomBytes(8).toString("hex")}`;
    this.#keys.add(key);
    return key;
  }

  #isUnfit(): boolean {
    return this.findings.some(({ ok }) => !ok);
  }

  #note(tried: string, seen: string, ok: boolean): void {
    this.findings.push({ tried, seen, ok });
  }
}

function newContent(): Uint8Array {
  return new TextEncoder().encode(`leasehold-probe ${randomBytes(16).toString("hex")}`);
}
