// What several figures of the learn page are made of: a slider over steps, bars, a product of two matrices.
import { bar, dotProduct } from "./dot_product.js";
import { element, fixed } from "./elements.js";
import { matrix } from "./matrix.js";

/** A slider over a few settings. `onChange` hears the number of the setting, at once and whenever it moves. */
export function slider(name, settings, start, onChange) {
  const output = element("output", {});
  const input = element("input", { type: "range", min: 0, max: settings.length - 1, step: 1, value: start, "aria-label": name });
  const change = () => {
    output.textContent = settings[Number(input.value)];
    input.setAttribute("aria-valuetext", output.textContent);
    onChange(Number(input.value));
  };
  input.addEventListener("input", change);
  change();
  return element("label", { class: "setting" }, `${name} `, output, input);
}

/** Numbers with bars, the longest `largest` long. */
export function bars(caption, labels, values, largest = 1, digits = 3) {
  const row = (label, i) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, label),
      element("td", {}, fixed(values[i], digits)),
      element("td", { class: "bar from-left" }, bar(values[i] / largest)),
    );
  return element("table", { class: "bars" }, element("caption", {}, caption), element("tbody", {}, labels.map(row)));
}

/**
 * `left · right = result`, each `{name, table, rowLabels, columnLabels}`. A click on a number of the result shows the
 * row and the column that made it, term by term.
 */
export function productFigure({ left, right, result, names }, start) {
  const explained = element("div", { "aria-live": "polite" });
  const parts = [matrix(left), matrix(right), matrix(result, (place) => place && explain(place))];
  function explain(place) {
    const { row, column } = { row: place.row ?? 0, column: place.column ?? 0 };
    parts[0].highlight([row]);
    parts[1].highlight([], [column]);
    parts[2].highlight([row], [column]);
    explained.replaceChildren(
      dotProduct({
        cell: `${result.name}[${row}, ${column}]`,
        leftName: `${left.name}[${row}, i]`,
        rightName: `${right.name}[i, ${column}]`,
        left: left.table.row(row),
        right: right.table.column(column),
        names,
        value: result.table.at(row, column),
      }),
    );
  }
  explain(start);
  const signs = ["·", "="].map((sign) => element("span", { class: "sign", "aria-hidden": "true" }, sign));
  const [a, b, c] = parts.map((part) => part.node);
  return element("div", { class: "stage" }, element("div", { class: "equation-row" }, a, signs[0], b, signs[1], c), explained);
}

/** A part of the page with a title. */
export function lesson(id, title, ...children) {
  return element("section", { id, "aria-labelledby": `${id}-title` }, element("h2", { id: `${id}-title` }, title), ...children);
}

export const says = (...text) => element("p", {}, ...text);
