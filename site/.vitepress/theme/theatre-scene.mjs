import { useData, withBase } from "vitepress";
import { h, onBeforeUnmount, ref, watch } from "vue";

/** A scene of the theatre, which opens where it stands: its page in a frame, as high as what it shows. */
export const TheatreScene = {
  props: { id: { type: String, required: true }, title: { type: String, required: true } },
  setup({ id, title }) {
    const frame = ref();
    const isOpen = ref(false);
    const { isDark } = useData();
    const address = (query) => withBase(`/theatre/index.html${query}#/scene/${id}`);
    let observer;
    const colour = () => {
      const document = frame.value?.contentDocument;
      if (document) document.documentElement.dataset.theme = isDark.value ? "dark" : "light";
    };
    const loaded = () => {
      colour();
      const { contentDocument, contentWindow } = frame.value;
      observer = new contentWindow.ResizeObserver(([{ borderBoxSize }]) => {
        // Until the run is made the page is short: text below the frame would jump.
        const height = Math.ceil(borderBoxSize[0].blockSize);
        if (frame.value && height > 300) frame.value.height = height + 2;
      });
      observer.observe(contentDocument.body);
    };
    watch(isDark, colour);
    onBeforeUnmount(() => observer?.disconnect());
    return () =>
      h("figure", { class: "scene", "data-scene": id }, [
        h("figcaption", [
          h(
            "button",
            {
              type: "button",
              "aria-expanded": isOpen.value,
              onClick: () => (isOpen.value = !isOpen.value),
            },
            [h("span", { "aria-hidden": true }, isOpen.value ? "▾ " : "▸ "), `Watch ${title}`],
          ),
          isOpen.value && h("a", { href: address(""), target: "_self" }, "All scenes"),
        ]),
        isOpen.value &&
          h("iframe", {
            ref: frame,
            src: address("?embedded"),
            title: `Theatre: ${title}`,
            height: 900,
            onLoad: loaded,
          }),
      ]);
  },
};
