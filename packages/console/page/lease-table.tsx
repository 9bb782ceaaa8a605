import { effect, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { LeaseView } from "../src/record/messages.js";
import { connection, counts, ended, follow, leases, serverNow, version } from "./live.js";
import { go, place } from "./place.js";
import { shortHolder } from "../src/record/holder.js";
import { span } from "./words.js";

/** All rows have one height, so that the visible ones can be computed without measuring. */
const rowPx = 40;
/** Rows rendered above and below the visible ones. */
const spareRows = 6;
const filterMs = 200;
/**
 * Sorting ten thousand rows takes part of a frame, so new and ended leases change the order at most this
 * often.
 */
const orderMs = 250;

type Order = "name" | "holder" | "since";

const order = signal<Order>("name");
const rows = signal<readonly string[]>([]);
const scroll = signal({ top: 0, height: 800 });
/** The row that has the focus; keys move it. */
const focused = signal(-1);

const compare: Readonly<Record<Order, (a: LeaseView, b: LeaseView) => number>> = {
  name: (a, b) => (a.name < b.name ? -1 : 1),
  holder: (a, b) => whoOf(a).localeCompare(whoOf(b)) || (a.name < b.name ? -1 : 1),
  since: (a, b) => a.sinceMs - b.sinceMs || (a.name < b.name ? -1 : 1),
};

let orderedMs = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

effect(() => {
  void version.value;
  void order.value;
  const waitMs = orderMs - (performance.now() - orderedMs);
  if (waitMs <= 0) sortRows();
  else timer ??= setTimeout(sortRows, waitMs);
});

function sortRows(): void {
  clearTimeout(timer);
  timer = undefined;
  orderedMs = performance.now();
  rows.value = [...leases.values()].sort(compare[order.peek()]).map(({ name }) => name);
}

let followed: string | undefined;
effect(() => {
  const { prefix, after } = place.value;
  const key = `${prefix}\n${after}`;
  if (key === followed) return;
  const isFirst = followed === undefined;
  followed = key;
  if (isFirst) follow(prefix, after);
  else setTimeout(() => followed === key && follow(prefix, after), filterMs);
});

const whoOf = ({ holder }: LeaseView): string => shortHolder(holder);

export function LeaseTable() {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current!;
    const see = (): void => {
      scroll.value = { top: element.scrollTop, height: element.clientHeight };
    };
    const observer = new ResizeObserver(see);
    observer.observe(element);
    element.addEventListener("scroll", see, { passive: true });
    see();
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", see);
    };
  }, []);
  void version.value;
  const names = rows.value;
  const { top, height } = scroll.value;
  const first = Math.max(0, Math.floor(top / rowPx) - spareRows);
  const seen = names.slice(first, first + Math.ceil(height / rowPx) + 2 * spareRows);
  return (
    <section class="leases" aria-label="Leases">
      <Search />
      <div class="table" role="table" aria-label="Leases" aria-rowcount={names.length + 1}>
        <div role="rowgroup">
          <div class="row head" role="row" aria-rowindex={1}>
            <Head by="name" text="Lease" />
            <Head by="holder" text="Holder" />
            <span role="columnheader" class="token">
              Token
            </span>
            <span role="columnheader">Time left</span>
            <Head by="since" text="Held for" />
          </div>
        </div>
        <div
          class="rows"
          role="rowgroup"
          ref={box}
          tabIndex={0}
          aria-label="Leases; arrow keys choose one, Enter shows it"
          onKeyDown={(event) => keys(event, box.current!)}
        >
          <div role="presentation" style={{ height: `${names.length * rowPx}px` }}>
            {seen.map((name, index) => (
              <Row key={name} name={name} index={first + index} />
            ))}
          </div>
        </div>
      </div>
      {names.length === 0 && <Empty />}
      <Pages names={names} />
    </section>
  );
}

function Search() {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const jump = (event: KeyboardEvent): void => {
      if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener("keydown", jump);
    return () => removeEventListener("keydown", jump);
  }, []);
  return (
    <label class="search">
      <span class="hidden">Names that begin with</span>
      <input
        ref={input}
        type="search"
        placeholder="Names that begin with …   ( / )"
        spellcheck={false}
        autocomplete="off"
        value={place.value.prefix}
        onInput={(event) => go({ prefix: event.currentTarget.value, after: "" })}
      />
    </label>
  );
}

function Head({ by, text }: { readonly by: Order; readonly text: string }) {
  return (
    <span role="columnheader" class={by} aria-sort={order.value === by ? "ascending" : "none"}>
      <button
        type="button"
        class="quiet"
        onClick={() => {
          order.value = by;
        }}
      >
        {text}
        {order.value === by ? " ↓" : ""}
      </button>
    </span>
  );
}

function Row({ name, index }: { readonly name: string; readonly index: number }) {
  const lease = ended.has(name) ? undefined : leases.get(name);
  const classes = ["row"];
  if (lease === undefined) classes.push("over");
  if (focused.value === index) classes.push("focused");
  if (place.value.name === name) classes.push("chosen");
  return (
    <div
      class={classes.join(" ")}
      role="row"
      aria-rowindex={index + 2}
      style={{ transform: `translateY(${index * rowPx}px)` }}
      onClick={() => {
        focused.value = index;
        go({ name });
      }}
    >
      <span role="cell" class="name" title={name}>
        {name}
      </span>
      <span role="cell" class="holder" title={lease?.holder}>
        {lease === undefined ? "free" : whoOf(lease)} <small>{lease?.label}</small>
      </span>
      <span role="cell" class="token">
        {lease?.token}
      </span>
      <span role="cell" class="left">
        {lease !== undefined && <Bar name={name} />}
      </span>
      <span role="cell" class="since">
        {lease !== undefined && <Age lease={lease} />}
      </span>
    </div>
  );
}

/** The visible bars. One loop draws them, so that a frame needs no rendering. */
const bars = new Map<HTMLElement, string>();
const calm = matchMedia("(prefers-reduced-motion: reduce)");
let drawnMs = 0;

function draw(nowMs: number): void {
  requestAnimationFrame(draw);
  if (nowMs - drawnMs < (calm.matches ? 1_000 : 30) || connection.peek() !== "live") return;
  drawnMs = nowMs;
  const now = serverNow();
  for (const [bar, name] of bars) {
    const lease = leases.get(name);
    if (lease === undefined) continue;
    const leftMs = Math.max(0, lease.endsMs - now);
    const share = lease.spanMs === 0 ? 0 : Math.min(1, leftMs / lease.spanMs);
    (bar.firstElementChild as HTMLElement).style.transform = `scaleX(${share.toFixed(3)})`;
    bar.classList.toggle("low", share < 0.25);
    const text = leftMs === 0 ? "due" : span(leftMs);
    if (bar.lastElementChild!.textContent !== text) bar.lastElementChild!.textContent = text;
  }
}
requestAnimationFrame(draw);

export function Bar({ name }: { readonly name: string }) {
  const bar = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const element = bar.current!;
    bars.set(element, name);
    return () => {
      bars.delete(element);
    };
  }, [name]);
  return (
    <span class="bar" ref={bar}>
      <i />
      <b />
    </span>
  );
}

const tick = signal(0);
setInterval(() => {
  tick.value += 1;
}, 1_000);

function Age({ lease }: { readonly lease: LeaseView }) {
  void tick.value;
  const text = span(Math.floor((serverNow() - lease.sinceMs) / 1000) * 1000).replace(".0 s", " s");
  if (lease.isOlder !== true) return <>{text}</>;
  return <span title="It was held already when this console began to watch">{`over ${text}`}</span>;
}

function Empty() {
  const { prefix } = place.value;
  if (connection.value === "connecting") return <p class="empty">Asking who holds what …</p>;
  if (prefix !== "") return <p class="empty">Nobody holds a lease whose name begins with “{prefix}”.</p>;
  return (
    <p class="empty">
      Nobody holds a lease. Try one: <code>npx leasehold run demo/hello -- sleep 30</code>
    </p>
  );
}

function Pages({ names }: { readonly names: readonly string[] }) {
  const { total, before } = counts.value;
  const { prefix, after } = place.value;
  if (before === 0 && (names.length >= total || prefix !== "" || names.length < 10_000)) return null;
  const last = [...names].sort().at(-1) ?? "";
  return (
    <p class="pages">
      {before + 1} to {before + names.length} of {total.toLocaleString()}
      {after !== "" && (
        <button type="button" onClick={() => go({ after: "" })}>
          From the first
        </button>
      )}
      <button type="button" onClick={() => go({ after: last })}>
        The next
      </button>
    </p>
  );
}

function keys(event: KeyboardEvent, box: HTMLElement): void {
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: 10,
    PageUp: -10,
    Home: -rows.value.length,
    End: rows.value.length,
  };
  const step = steps[event.key];
  if (step !== undefined) {
    event.preventDefault();
    const index = Math.max(0, Math.min(rows.value.length - 1, Math.max(0, focused.value) + step));
    focused.value = focused.value === -1 ? 0 : index;
    const topPx = focused.value * rowPx;
    if (topPx < box.scrollTop) box.scrollTop = topPx;
    if (topPx + rowPx > box.scrollTop + box.clientHeight) box.scrollTop = topPx + rowPx - box.clientHeight;
  }
  if (event.key === "Enter") {
    const name = rows.value[focused.value];
    if (name !== undefined) go({ name });
  }
}
