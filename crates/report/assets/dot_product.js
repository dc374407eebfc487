// Where a number comes from: a row times a column, term by term.
import { dataTable, tableRow } from "./data_table.js";
import { element, fixed } from "./elements.js";

const DIGITS = 4;

/**
 * `Σ_i left_i · right_i`, and what is added, against the number in the cell.
 * `{cell: "Q[3, 1]", leftName, rightName, left: [numbers], right: [numbers], names?: [what i is], added?: [[name, number]], value}`
 */
export function dotProduct({ cell, leftName, rightName, left, right, names, added = [], value }) {
  const products = Array.from(left, (number, i) => number * right[i]);
  const largest = Math.max(...products.map(Math.abs), 1e-12);
  const row = (product, i) =>
    tableRow(
      names ? names[i] : String(i),
      [...[left[i], right[i], product].map((number) => fixed(number, DIGITS)), barCell(product / largest)],
      { class: Math.abs(product) === largest ? "here" : null },
    );
  const sum = products.reduce((total, product) => total + product, 0);
  const parts = [["sum of products", sum], ...added];
  return element(
    "div",
    { class: "dot-product" },
    element(
      "p",
      { class: "equation" },
      `${cell} = Σ_i ${leftName}·${rightName}${added.map(([name]) => ` + ${name}`).join("")} = `,
      element("output", {}, fixed(value, DIGITS)),
    ),
    added.length
      ? element("p", {}, parts.map(([name, number]) => `${name} ${fixed(number, DIGITS)}`).join(", "))
      : null,
    dataTable(`The terms of ${cell}`, ["i", leftName, rightName, "product", ""], products.map(row)),
  );
}

/** A bar in a cell of a table. */
export function barCell(share, signed = true) {
  return element("td", { class: "bar" }, bar(share, signed));
}

/** A bar to the right for a positive share, to the left for a negative one; where none is negative, from the left edge. */
export function bar(share, signed = true) {
  const width = `${Math.min(Math.abs(share), 1) * (signed ? 50 : 100)}%`;
  const side = share < 0 ? "right: 50%" : `left: ${signed ? 50 : 0}%`;
  return element("span", {
    class: share < 0 ? "negative" : "positive",
    style: `width: ${width}; ${side}`,
    "aria-hidden": "true",
  });
}
