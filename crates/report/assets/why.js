// Why a head looks at a key: which part of the query meets which part of the key, and what the head moves from there.
import { dataTable, tableRow } from "./data_table.js";
import { barCell } from "./dot_product.js";
import { element, fixed, visible, withMinus } from "./elements.js";

/** A place for one answer. `show(data)` draws it, `say(text)` says why there is none. */
export function whyPanel() {
  const place = element("div", { "aria-live": "polite" });
  return {
    node: element("div", { class: "why" }, element("h3", {}, "Why does it look there?"), place),
    say: (text) => place.replaceChildren(element("p", { class: "hint" }, text)),
    show: (data) => place.replaceChildren(...drawn(data)),
  };
}

function drawn(data) {
  const { margin, sizes, for_every_query: forEvery, random_key: random } = data;
  return [
    element("p", {}, visibleSpaces(withMinus(data.finding))),
    element(
      "p",
      { class: "hint" },
      `The margin ${fixed(margin, 2)} is the score minus the scores of the other keys, weighted as the head weights them. ` +
        `${fixed(forEvery, 2)} of it is for every query, whatever it holds. A random visible key has a margin of ${fixed(random, 2)}. ` +
        `The sizes of all terms add up to ${fixed(sizes, 2)}.`,
    ),
    termTable(data),
    data.moved.length ? element("h4", {}, "What it moves from there") : null,
    data.moved.length ? movedTable(data) : null,
    data.raised.length
      ? element("p", { class: "hint" }, `It raises most: ${data.raised.map(([token, logit]) => `${visible(token)} ${fixed(logit, 2)}`).join(", ")}.`)
      : null,
  ].filter(Boolean);
}

/** A sentence, whose spaces stay spaces. */
const visibleSpaces = (text) => text.split(" ").map((word) => (word ? visible(word) : "")).join(" ");

/** The largest terms, a bar each. */
function termTable({ terms, others: [count, rest], margin }) {
  const largest = Math.max(...terms.map(([, , value]) => Math.abs(value)), 1e-12);
  const row = ([query, key, value]) =>
    tableRow(query, [key, fixed(value, 2), barCell(value / largest)], { "data-term": `${query} × ${key}` });
  const rows = terms.map(row);
  if (count > 0) rows.push(tableRow(`the other ${count}`, ["", fixed(rest, 2), barCell(rest / largest)]));
  rows.push(tableRow("together", ["", fixed(margin, 2), element("td", {})], { class: "here" }));
  return dataTable("The terms of the margin", ["in the query", "in the key", "adds", ""], rows, { class: "terms" });
}

/** Who wrote what the head moves, and what it adds to a logit. */
function movedTable({ moved, moved_together: together, toward }) {
  const largest = Math.max(...moved.map(([, value]) => Math.abs(value)), 1e-12);
  const rows = moved.map(([name, value]) => tableRow(name, [fixed(value, 2), barCell(value / largest)]));
  rows.push(tableRow("together", [fixed(together, 2), element("td", {})], { class: "here" }));
  return element(
    "div",
    {},
    element("p", { class: "hint" }, `To the logit of ${visibleSpaces(toward)}, above the mean of all logits: the direct path alone, with the pattern and the scales of norms held.`),
    dataTable("What the head moves", ["written at the key", "logit", ""], rows),
  );
}
