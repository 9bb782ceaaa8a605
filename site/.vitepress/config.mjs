// The pages as a site. They are those that people read at the repository: nothing is written twice, and the menu is
// docs/README.md.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";
import { playgroundPage } from "../playground/page.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const pages = fileURLToPath(new URL("../pages", import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, "packages/leasehold/package.json"), "utf8"));

/** Pages beside `docs/`, which link to them. */
const others = ["README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG", "SECURITY", "CODE_OF_CONDUCT"];

/** The page at this address, as VitePress knows it. */
const addressOf = (path) => `/${path.replace(/(^|\/)README\.md$/, "$1").replace(/\.md$/, "")}`;

/** The lists of docs/README.md, below its headings and below lines such as "Run a ground:". */
function menu() {
  const groups = [];
  let heading = "";
  const begin = (text) => groups.push({ text, items: [] });
  for (const line of readFileSync(join(root, "docs/README.md"), "utf8").split("\n")) {
    const [, title] = /^## (.*)/.exec(line) ?? [];
    const [, part] = /^([A-Z][^[]*):$/.exec(line) ?? [];
    if (title !== undefined) begin((heading = title));
    if (part !== undefined) begin(`${heading}: ${part[0].toLowerCase()}${part.slice(1)}`);
    for (const [, name, target] of line.matchAll(/\[([^\]]+)\]\(([^)#]+\.md)\)/g)) {
      const path = relative(root, join(root, "docs", target));
      groups.at(-1)?.items.push({ text: titleOf(path) ?? name, link: addressOf(path) });
    }
  }
  return groups.filter(({ items }) => items.length > 0);
}

/** The heading of a page. */
function titleOf(path) {
  const [, title] = /^# (.*)/m.exec(readFileSync(join(root, path), "utf8")) ?? [];
  return title?.replaceAll("`", "");
}

const isPage = (path) =>
  path.endsWith(".md") &&
  (path.startsWith("docs/") || path.startsWith("deploy/") || others.includes(path.replace(/\.md$/, "")));

/** A link to a file that is no page of the site keeps its text only: the site does not know the repository's address. */
function withoutLinksToSources(markdown) {
  const rule = (state) => {
    for (const { type, children } of state.tokens) {
      if (type !== "inline") continue;
      let open;
      for (const token of children) {
        if (token.type === "link_open") {
          open = isLost(token.attrGet("href"), state.env) ? token : undefined;
          if (open !== undefined) hide(token);
        } else if (token.type === "link_close" && open !== undefined) {
          hide(token);
          open = undefined;
        }
      }
    }
  };
  markdown.core.ruler.push("links-to-sources", rule);
}

/** The corner of a table has no heading, which screen readers would announce. */
function withoutEmptyHeaders(markdown) {
  markdown.core.ruler.push("empty-headers", ({ tokens }) => {
    for (const [at, token] of tokens.entries()) {
      if (token.type !== "th_open" || tokens[at + 1]?.content !== "") continue;
      token.tag = "td";
      tokens[at + 2].tag = "td";
    }
  });
}

/** `<!-- theatre SCENE: TITLE -->` in a page is a scene that plays there. `<!-- playground -->` is two programs. */
function withScenes(markdown) {
  markdown.core.ruler.push("scenes", ({ tokens }) => {
    for (const token of tokens) {
      const [, id, title] = /^<!-- theatre (\w+): (.*) -->\s*$/.exec(token.content) ?? [];
      if (token.type !== "html_block") continue;
      if (token.content.trim() === "<!-- playground -->") token.content = "<LeasePlayground />";
      if (id !== undefined)
        token.content = `<TheatreScene id="${id}" title="${markdown.utils.escapeHtml(title)}" />`;
    }
  });
}

/**
 * Everything comes from the site itself. VitePress puts a few scripts into each page, which are allowed by their hashes,
 * and colours code by `style` attributes.
 */
function withPolicy(html) {
  const inline = [...html.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([^]*?)<\/script>/g)];
  const hashes = inline.map(([, text]) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`);
  const policy = [
    "default-src 'none'",
    `script-src 'self' ${[...new Set(hashes)].join(" ")}`,
    "style-src 'self'",
    "style-src-attr 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "frame-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ];
  return html.replace(
    "<head>",
    `<head>\n    <meta http-equiv="Content-Security-Policy" content="${policy.join("; ")}">`,
  );
}

/** The licences of others' code in the pages, which ask for their notice in each copy. */
const withLicences = {
  name: "licences",
  generateBundle(_options, bundle) {
    const notices = new Map();
    for (const { moduleIds = [] } of Object.values(bundle))
      for (const id of moduleIds) {
        const [folder, name] = /^.*\/node_modules\/((?:@[^/]+\/)?[^/]+)(?=\/)/.exec(id) ?? [];
        if (folder === undefined || notices.has(name)) continue;
        const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
        const { license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
        const text =
          file === undefined ? `Licence: ${license}` : readFileSync(join(folder, file), "utf8").trim();
        notices.set(name, `${name}\n\n${text}\n`);
      }
    const source = [...notices.keys()]
      .sort()
      .map((name) => notices.get(name))
      .join("\n---\n\n");
    this.emitFile({ type: "asset", fileName: "LICENSES.txt", source });
  },
};

function hide(token) {
  token.type = "text";
  token.tag = "";
  token.content = "";
  token.nesting = 0;
  token.attrs = null;
}

function isLost(href, { path: page }) {
  if (/^(?:[a-z]+:|#|\/)/.test(href)) return false;
  const path = relative(pages, join(dirname(page), decodeURI(href.replace(/#.*/, ""))));
  const full = join(root, path);
  if (!existsSync(full)) return false;
  return statSync(full).isDirectory()
    ? !existsSync(join(full, "README.md")) || !isPage(`${path}/README.md`)
    : !isPage(path);
}

/** Copies pages and pictures: what VitePress builds has to lie below its own modules. */
function copyPages() {
  rmSync(pages, { recursive: true, force: true });
  const listed = execFileSync(
    "git",
    ["ls-files", "--cached", "--others", "--exclude-standard", "docs", "deploy", "*.md"],
    {
      cwd: root,
      encoding: "utf8",
    },
  );
  for (const path of listed.split("\n").filter((each) => isPage(each) || /\.(?:svg|png|webp)$/.test(each)))
    cpSync(join(root, path), join(pages, path), { recursive: true });
}

copyPages();
cpSync(join(root, "packages/console/page/icon.svg"), join(pages, "public/icon.svg"));
cpSync(join(root, "packages/sim/dist/page"), join(pages, "public/theatre"), { recursive: true });
mkdirSync(join(pages, "public/playground"));
writeFileSync(
  join(pages, "public/playground/frame.html"),
  await playgroundPage(fileURLToPath(new URL("../playground", import.meta.url))),
);

export default defineConfig({
  title: "Leasehold",
  description: "Exclusive, time-bounded ownership of a named resource in a distributed system.",
  lang: "en-GB",
  srcDir: "pages",
  outDir: "../packages/docs/pages",
  cacheDir: ".vitepress/cache",
  cleanUrls: true,
  // Otherwise each page adds a `style` element, which `withPolicy` refuses.
  appearance: { disableTransition: false },
  head: [["link", { rel: "icon", href: "/icon.svg", type: "image/svg+xml" }]],
  rewrites: (path) => path.replace(/(^|\/)README\.md$/, "$1index.md"),
  // What the pages link to is there: `test/documentation.test.ts` has looked at files and headings.
  ignoreDeadLinks: false,
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    config: (markdown) => {
      withoutLinksToSources(markdown);
      withoutEmptyHeaders(markdown);
      withScenes(markdown);
    },
    languageAlias: { ndjson: "json", output: "console" },
  },
  transformHtml: withPolicy,
  vite: { build: { chunkSizeWarningLimit: 2_000 }, plugins: [withLicences] },
  themeConfig: {
    nav: [
      { text: "Quick start", link: "/docs/quick-start" },
      { text: "Guarantees", link: "/docs/guarantees" },
      { text: "API", link: "/docs/api/" },
      { text: `v${version}`, link: "/CHANGELOG" },
    ],
    sidebar: menu(),
    outline: [2, 3],
    search: { provider: "local" },
    docFooter: { prev: false, next: false },
    lastUpdated: false,
  },
});
