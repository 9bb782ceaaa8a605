import { useEffect, useRef, useState } from "preact/hooks";
import type { ActAnswer, ActRequest, LeaseAnswer, TenureView } from "../src/record/messages.js";
import { Bar } from "./lease-table.js";
import { ended, leases, serverNow, start, version } from "./live.js";
import { go } from "./place.js";
import { shortHolder } from "../src/record/holder.js";
import { endWords, span, timeOfDay } from "./words.js";

const askEveryMs = 1_000;

/** One lease: its holder, why others cannot get it, its history, and the actions on it. */
export function Details({ name }: { readonly name: string }) {
  const [answer, setAnswer] = useState<LeaseAnswer>();
  const [failure, setFailure] = useState<string>();
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current?.focus();
    const close = (event: KeyboardEvent): void => {
      if (event.key === "Escape" && document.querySelector("dialog[open]") === null) go({ name: "" });
    };
    addEventListener("keydown", close);
    const stop = new AbortController();
    void askAgain(name, stop.signal, setAnswer, setFailure);
    return () => {
      stop.abort();
      removeEventListener("keydown", close);
      if (before instanceof HTMLElement) before.focus();
    };
  }, [name]);
  void version.value;
  const lease = ended.has(name) ? undefined : leases.get(name);
  return (
    <aside class="details" aria-label={`Lease ${name}`} ref={box} tabIndex={-1}>
      <div class="title">
        <h2>{name}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={() => go({ name: "" })}>
          ✕
        </button>
      </div>
      {failure !== undefined && <p class="notice">{failure}</p>}
      {answer === undefined ? (
        <p class="empty">Asking …</p>
      ) : (
        <>
          <p class={answer.state === "held" ? "state held" : "state"}>
            {answer.state === "held"
              ? "Held"
              : answer.state === "free"
                ? "Free"
                : "Unknown: too few answers, or they differ"}
          </p>
          {answer.state === "held" && (
            <dl>
              <dt>Holder</dt>
              <dd>{answer.holder}</dd>
              {answer.label !== undefined && (
                <>
                  <dt>It says it is</dt>
                  <dd>{answer.label}</dd>
                </>
              )}
              <dt>Token</dt>
              <dd>{answer.token}</dd>
              {lease !== undefined && (
                <>
                  <dt>Since</dt>
                  <dd>
                    {lease.isOlder === true ? "before " : ""}
                    {timeOfDay(lease.sinceMs)}, for {lease.isOlder === true ? "over " : ""}
                    {span(serverNow() - lease.sinceMs)}
                  </dd>
                  <dt>Unless renewed</dt>
                  <dd>
                    <Bar name={name} />
                  </dd>
                </>
              )}
              <dt>Waiting</dt>
              <dd>{answer.waiting === 0 ? "nobody" : answer.waiting}</dd>
            </dl>
          )}
          {answer.state === "held" && (
            <p class="hint">
              {answer.isBroken
                ? "It was broken: it cannot be renewed, and is free at its end."
                : "If its holder dies now, others can have it when this time is over."}
            </p>
          )}
          {answer.data !== undefined && (
            <>
              <h3>Data of the tenure</h3>
              <pre>{JSON.stringify(answer.data, null, 2)}</pre>
            </>
          )}
          {answer.reasons.length > 0 && (
            <>
              <h3>Why</h3>
              <ul>
                {answer.reasons.map((reason) => (
                  <li key={reason}>{reason}</li>
                ))}
              </ul>
            </>
          )}
          <Timeline tenures={answer.tenures} />
          <Copies copies={answer.copies} />
          {start.value?.allowChanges === true && answer.state === "held" && <Actions name={name} />}
        </>
      )}
    </aside>
  );
}

async function askAgain(
  name: string,
  signal: AbortSignal,
  show: (answer: LeaseAnswer) => void,
  fail: (text: string | undefined) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const response = await fetch(`/api/lease?${new URLSearchParams({ name })}`, { signal });
      const answer = (await response.json()) as LeaseAnswer & { readonly text?: string };
      if (response.ok) show(answer);
      fail(response.ok ? undefined : answer.text);
    } catch {
      if (!signal.aborted) fail("The console's server does not answer.");
    }
    await new Promise((resolve) => setTimeout(resolve, askEveryMs));
  }
}

const laneCount = 6;

/** The tenures as bars on one time axis, with gaps while nobody held the lease, and the same as a list. */
function Timeline({ tenures }: { readonly tenures: readonly TenureView[] }) {
  const [first] = tenures;
  if (first === undefined) return null;
  const now = serverNow();
  const fromMs = first.sinceMs;
  const allMs = Math.max(1, now - fromMs);
  const holders = [...new Set(tenures.map(({ holder }) => holder))];
  const percent = (ms: number): string => `${((100 * ms) / allMs).toFixed(2)}%`;
  return (
    <>
      <h3>Tenures since {timeOfDay(fromMs)}</h3>
      <svg
        class="timeline"
        width="100%"
        height="26"
        role="img"
        aria-label={`${tenures.length} tenures, listed below`}
      >
        <rect class="axis" x="0" y="12" width="100%" height="2" />
        {tenures.map(({ token, holder, sinceMs, untilMs = now }) => (
          <rect
            key={token}
            class={`lane lane-${holders.indexOf(holder) % laneCount}`}
            x={percent(sinceMs - fromMs)}
            width={percent(Math.max(untilMs - sinceMs, allMs / 300))}
            y="3"
            height="20"
            rx="2"
          >
            <title>{`${shortHolder(holder)}, token ${token}, ${span(untilMs - sinceMs)}`}</title>
          </rect>
        ))}
      </svg>
      <ol class="tenures">
        {tenures.toReversed().map((tenure, index, all) => {
          const { token, holder, label, sinceMs, untilMs, end, isOlder } = tenure;
          const before = all[index + 1];
          const gapMs = before?.untilMs === undefined ? 0 : sinceMs - before.untilMs;
          return (
            <li key={token}>
              <span class={`dot lane-${holders.indexOf(holder) % laneCount}`} />
              <span>
                <b title={holder}>{shortHolder(holder)}</b> {label === undefined ? "" : `(${label}) `}
                {isOlder === true ? "over " : ""}
                {span((untilMs ?? now) - sinceMs)}
                {untilMs === undefined ? ", holds it now" : `, until ${timeOfDay(untilMs)}`}
                {end === undefined ? "" : `: ${endWords[end]}`}
                <small>
                  token {token}
                  {gapMs > 0 ? `, after ${span(gapMs)} without a holder` : ""}
                </small>
              </span>
            </li>
          );
        })}
      </ol>
    </>
  );
}

function Copies({ copies }: { readonly copies: LeaseAnswer["copies"] }) {
  if (copies.length === 0) return null;
  return (
    <>
      <h3>What each keeps</h3>
      <table class="views">
        <thead>
          <tr>
            <th scope="col">Where</th>
            <th scope="col">State</th>
            <th scope="col">Lease there</th>
          </tr>
        </thead>
        <tbody>
          {copies.map(({ id, address, text, lease }) => (
            <tr key={id}>
              <th scope="row" title={address}>
                {id}
              </th>
              <td>{text}</td>
              <td>
                {lease === undefined
                  ? "none"
                  : `${shortHolder(lease.holder)}, ${lease.state === "live" ? `${span(lease.remainingMs)} left` : lease.state}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

type Action = ActRequest["action"];

const actions: Readonly<Record<Action, { readonly text: string; readonly says: string }>> = {
  release: {
    text: "Ask to release",
    says: "The holder is asked to release the lease. It finishes what it does, and may ignore the request. Nothing else changes.",
  },
  handover: {
    text: "Hand over",
    says: "The holder is asked to release the lease, and the waiter that you name has it next. The holder may ignore the request.",
  },
  break: {
    text: "Break",
    says: "The holder can no longer renew. The lease ends when its time is over, never sooner, and then another can have it. Work that the holder has begun is lost unless it ends before.",
  },
};

function Actions({ name }: { readonly name: string }) {
  const [chosen, setChosen] = useState<Action>();
  const [to, setTo] = useState("");
  const [result, setResult] = useState<string>();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (chosen !== undefined) dialog.current?.showModal();
  }, [chosen]);
  return (
    <div class="actions">
      <h3>Change it</h3>
      {(Object.keys(actions) as Action[]).map((action) => (
        <button
          key={action}
          type="button"
          class={action === "break" ? "danger" : ""}
          onClick={() => setChosen(action)}
        >
          {actions[action].text} …
        </button>
      ))}
      {result !== undefined && <p role="status">{result}</p>}
      {chosen !== undefined && (
        <dialog ref={dialog} aria-label={actions[chosen].text} onClose={() => setChosen(undefined)}>
          <h3>
            {actions[chosen].text}: {name}
          </h3>
          <p>{actions[chosen].says}</p>
          {chosen === "handover" && (
            <label>
              The waiter, by name or label{" "}
              <input value={to} onInput={(event) => setTo(event.currentTarget.value)} />
            </label>
          )}
          <div class="buttons">
            <button type="button" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
            <button
              type="button"
              class="danger"
              disabled={chosen === "handover" && to === ""}
              onClick={() => {
                void act({ action: chosen, name, ...(chosen === "handover" && { to }) }).then(setResult);
                dialog.current?.close();
              }}
            >
              {actions[chosen].text}
            </button>
          </div>
        </dialog>
      )}
    </div>
  );
}

async function act(body: ActRequest): Promise<string> {
  try {
    const headers = { "content-type": "application/json" };
    const response = await fetch("/api/act", { method: "POST", headers, body: JSON.stringify(body) });
    const answer = (await response.json()) as ActAnswer & { readonly text?: string };
    if (!response.ok) return answer.text ?? "It was refused.";
    if (!answer.isDone)
      return "It had no effect: nobody seems to hold the lease, or the holder was not reached.";
    return body.action === "break" ? "Broken: it ends with its time." : "The holder was told.";
  } catch {
    return "The console's server does not answer: it is not known whether this was done.";
  }
}
