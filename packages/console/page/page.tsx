import { computed, effect, signal } from "@preact/signals";
import { render } from "preact";
import { Details } from "./details.js";
import { EventList } from "./event-list.js";
import { Ground } from "./ground.js";
import { LeaseTable } from "./lease-table.js";
import { connection, counts, ground, heardMs, start, trouble } from "./live.js";
import { type View, go, place } from "./place.js";
import { span } from "./words.js";

const themes = ["auto", "light", "dark"] as const;
type Theme = (typeof themes)[number];

const theme = signal<Theme>(themes.find((each) => each === localStorage.getItem("theme")) ?? "auto");
effect(() => {
  localStorage.setItem("theme", theme.value);
  document.documentElement.dataset["theme"] = theme.value;
});

/** Incremented once a second, for ages and countdowns. */
const tick = signal(0);
setInterval(() => {
  tick.value += 1;
}, 1_000);

const partsName = computed(() => {
  const kind = ground.value?.kind;
  return kind === "stores" ? "Stores" : kind === "servers" ? "Servers" : "Members";
});

function Page() {
  const { view, name } = place.value;
  return (
    <div class={name === "" ? "page" : "page with-details"}>
      <Header />
      <nav aria-label="Views">
        <Tab
          view="leases"
          text={`Leases ${counts.value.total === 0 ? "" : counts.value.total.toLocaleString()}`}
        />
        <Tab view="ground" text={partsName.value} />
        <Tab view="events" text="Events" />
      </nav>
      <Notice />
      <main>
        {view === "leases" && <LeaseTable />}
        {view === "ground" && <Ground />}
        {view === "events" && <EventList />}
      </main>
      {name !== "" && <Details key={name} name={name} />}
    </div>
  );
}

function Header() {
  const state = ground.value;
  const words = { connecting: "connecting", live: "live", old: "not connected" }[connection.value];
  const isBad = state !== undefined && !state.isAble;
  return (
    <header>
      <h1>
        <img src="/icon.svg" alt="" width="22" height="22" /> Leasehold
      </h1>
      <p class={isBad ? "summary bad" : "summary"} title={start.value?.endpoints}>
        {state?.summary ?? "…"}
        {isBad && ": no lease can be acquired or renewed now"}
      </p>
      <span class={`live ${connection.value}`} role="status">
        {words}
      </span>
      <button
        type="button"
        class="quiet"
        aria-label={`Colours: ${theme.value}`}
        title={`Colours: ${theme.value}`}
        onClick={() => {
          theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length]!;
        }}
      >
        {{ auto: "◐", light: "☀", dark: "☾" }[theme.value]}
      </button>
    </header>
  );
}

function Tab({ view, text }: { readonly view: View; readonly text: string }) {
  const isHere = place.value.view === view;
  return (
    <a
      href={`#/${view}`}
      aria-current={isHere ? "page" : undefined}
      onClick={(event) => {
        event.preventDefault();
        go({ view, name: "" });
      }}
    >
      {text}
    </a>
  );
}

/** Warns that the page may be out of date, and says why. */
function Notice() {
  void tick.value;
  if (connection.value === "old")
    return (
      <p class="notice" role="alert">
        No connection to the console's server for {span(performance.now() - heardMs.value)}: this is how it
        was then. Trying again.
      </p>
    );
  if (trouble.value === undefined) return null;
  return (
    <p class="notice" role="alert">
      What is shown may be old: {trouble.value}
    </p>
  );
}

render(<Page />, document.querySelector("#page")!);
