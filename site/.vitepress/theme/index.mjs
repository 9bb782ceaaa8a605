import theme from "vitepress/theme-without-fonts";
import { LeasePlayground } from "./lease-playground.mjs";
import { TheatreScene } from "./theatre-scene.mjs";
import "./style.css";

export default {
  extends: theme,
  enhanceApp({ app }) {
    app.component("LeasePlayground", LeasePlayground);
    app.component("TheatreScene", TheatreScene);
  },
};
