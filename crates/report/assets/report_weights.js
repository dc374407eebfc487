// What a head's weights say of tokens, whatever the sequence: the largest entries of its QK and OV circuits.
import { dataTable, tableRow } from "./data_table.js";
import { element, fixed, visible } from "./elements.js";

export function weightPairs(head) {
  const pairs = pageData.circuits[head];
  if (!pairs) return null;
  const table = (title, columns, rows) => {
    const row = ([from, to, entry]) => tableRow(visible(from), [visible(to), fixed(entry, 2)]);
    return element("div", {}, element("p", { class: "hint" }, title), dataTable(title, columns, rows.map(row)));
  };
  return element(
    "details",
    {},
    element("summary", {}, "What its weights say of tokens"),
    element(
      "p",
      {},
      "The largest entries of the head's circuits, norm gains folded in, before any sequence is seen. They hold up to the factor that the norms divide by.",
    ),
    element(
      "div",
      { class: "two narrow" },
      table("W_E·W_QK·W_Eᵀ: which token looks for which", ["query", "key", "entry"], pairs.qk),
      table("W_E·W_OV·W_U: which token, looked at, makes which likelier", ["looked at", "next", "entry"], pairs.ov),
    ),
  );
}
