// A table of rows with names, in a box that scrolls by itself.
import { element } from "./elements.js";

/** A row: its name, then its cells, texts or `td` elements. */
export function tableRow(name, cells, attributes = {}) {
  const cell = (content) => (typeof content === "string" ? element("td", {}, content) : content);
  return element("tr", attributes, element("th", { scope: "row" }, name), cells.map(cell));
}

/** Rows of `tr` elements under the names of their columns. */
export function dataTable(label, columns, rows, attributes = {}) {
  // A name stands as its column does.
  const isText = (at) => at === 0 || rows[0]?.children[at]?.classList.contains("text");
  // A name that narrow windows hide takes its column along.
  const classOf = (name, at) => (name.classList?.contains("wide-only") ? "wide-only" : isText(at) ? "text" : null);
  const header = columns.map((name, at) => element("th", { scope: "col", class: classOf(name, at) }, name));
  const table = element(
    "table",
    attributes,
    element("thead", {}, element("tr", {}, header)),
    element("tbody", {}, rows),
  );
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
}
