import { withBase } from "vitepress";
import { h, onBeforeUnmount, onMounted, reactive, ref } from "vue";

const first = `import { open } from "leasehold";

const leases = await open("memory:");
{
  await using lease = await leases.acquire("reports/nightly", { wait: "30s" });
  for (const report of await reportsToWrite()) {
    lease.assertHeld(500);
    await write(report, { token: lease.token });
  }
}
await leases.close();
`;
const linesMax = 200;

const idle = {
  isRunning: false,
  isFrozen: false,
  isWaiting: false,
  token: undefined,
  remainingMs: 0,
  share: 0,
};

function words({ isFrozen, isWaiting, token, isRunning }) {
  const frozen = isFrozen ? "frozen, " : "";
  if (token !== undefined) return `${frozen}holds the lease, token ${token}`;
  if (isWaiting) return `${frozen}waits for the lease`;
  return isRunning ? `${frozen}holds nothing` : "not running";
}

/** Two programs that contend for one lease, run by a frame of its own (`site/playground`). */
export const LeasePlayground = {
  setup() {
    const frame = ref();
    const panes = reactive(["A", "B"].map((name) => ({ name, code: first, state: idle, lines: [] })));
    const print = (pane, lines) => {
      pane.lines = [...pane.lines, ...lines].slice(-linesMax);
    };
    const send = (message) => frame.value.contentWindow.postMessage(message, "*");
    const heard = ({ source, data }) => {
      if (source !== frame.value?.contentWindow) return;
      for (const pane of panes) {
        const now = data.programs?.find(({ name }) => name === pane.name);
        pane.state = now ?? idle;
        const lines = data.stuck === true ? ["stopped: a loop let nothing else run"] : now.lines;
        if (lines.length > 0) print(pane, lines);
      }
    };
    onMounted(() => addEventListener("message", heard));
    onBeforeUnmount(() => removeEventListener("message", heard));
    const run = (pane) => {
      pane.lines = [];
      send({ name: pane.name, run: pane.code });
    };
    const button = (text, onClick, disabled) => h("button", { type: "button", onClick, disabled }, text);
    const drawn = (pane) => {
      const { name, state } = pane;
      return h("section", { class: "program", "data-name": name, "aria-label": `Program ${name}` }, [
        h("div", { class: "bar" }, [
          h("strong", name),
          button(state.isRunning ? "Run again" : "Run", () => run(pane)),
          button(
            state.isFrozen ? "Unfreeze" : "Freeze",
            () => send({ name, freeze: !state.isFrozen }),
            !state.isRunning,
          ),
          button("Stop", () => send({ name, stop: true }), !state.isRunning),
        ]),
        h("textarea", {
          "aria-label": `Code of program ${name}`,
          spellcheck: false,
          rows: 12,
          value: pane.code,
          onInput: ({ target }) => (pane.code = target.value),
        }),
        h("p", { class: "state" }, [
          h("span", words(state)),
          state.token !== undefined && h("span", ` ${(state.remainingMs / 1_000).toFixed(1)} s left`),
        ]),
        h("progress", { max: 1, value: state.share, "aria-label": `Time left of ${name}` }),
        h(
          "pre",
          { role: "log", "aria-label": `Output of program ${name}`, tabindex: 0 },
          h("code", pane.lines.join("\n")),
        ),
      ]);
    };
    return () =>
      h("div", { class: "playground" }, [
        ...panes.map(drawn),
        h("iframe", {
          ref: frame,
          src: withBase("/playground/frame.html"),
          sandbox: "allow-scripts",
          title: "What runs the programs",
        }),
      ]);
  },
};
