// From embeddings to scores, and why scores are divided by √d.
import { element, drawnForWidth, fixed, svgElement } from "./elements.js";
import { lesson, productFigure, says, slider } from "./learn_controls.js";
import { table, transposed } from "./matrix.js";

/** A matrix of the worked example as numbers. */
export function exampleTable(rows) {
  return table(rows.length, rows[0].length, rows.flat());
}

/** Two rows of it. */
const rowsOf = (numbers, chosen) => table(chosen.length, numbers.columns, chosen.flatMap((row) => [...numbers.row(row)]));

// cat and sat
const CHOSEN = [1, 2];

/** Two embeddings become two queries, and these meet two keys. */
export function scoresLesson({ tokens, features, example }) {
  const names = CHOSEN.map((at) => tokens[at]);
  const of = (name) => exampleTable(example[name]);
  const [x, q, k] = ["X", "Q", "K"].map((name) => rowsOf(of(name), CHOSEN));
  const scores = table(2, 2, CHOSEN.flatMap((row) => CHOSEN.map((column) => example.scores[row][column])));
  return [
    lesson(
      "queries",
      "A query is a row times a matrix",
      says("Two tokens come in as rows of X. W_Q is a parameter: training sets it, and it is the same in every sentence. Their product Q is an activation: it exists for this sentence only. Click a number of Q to see the row and the column that made it."),
      productFigure(
        { left: { name: "X", table: x, rowLabels: names }, right: { name: "W_Q", table: of("W_Q"), rowLabels: features }, result: { name: "Q", table: q, rowLabels: names }, names: features },
        { row: 0, column: 1 },
      ),
    ),
    lesson(
      "scores",
      "A score is a query times a key",
      says("Keys are made like queries, with W_K in place of W_Q. One product of Q and the keys turned on their side compares every query with every key. The score is large where the query has large numbers in the places where the key has them."),
      productFigure(
        { left: { name: "Q", table: q, rowLabels: names }, right: { name: "Kᵀ", table: transposed(k), columnLabels: names }, result: { name: "scores", table: scores, rowLabels: names, columnLabels: names } },
        { row: 0, column: 1 },
      ),
      says("The table need not be symmetric: cat looks for a verb, and sat looks for something else."),
    ),
  ];
}

const deviation = (numbers) => Math.sqrt(numbers.reduce((sum, x) => sum + x * x, 0) / numbers.length);

/** The cloud of dot products by width. */
export function cloudLesson({ clouds }) {
  const place = element("div", { class: "cloud" });
  const told = element("p", { class: "readout", "aria-live": "polite" });
  const largest = Math.max(...clouds.flatMap((cloud) => cloud.dot_products.map(Math.abs)));
  let at = 0;
  const draw = drawnForWidth(place, (width) => {
    const { d, dot_products: raw } = clouds[at];
    const scaled = raw.map((x) => x / Math.sqrt(d));
    place.replaceChildren(cloud("q·k", raw, largest, width, 1), cloud("q·k/√d", scaled, largest, width, 0));
    told.textContent = `d = ${d}: q·k spreads by ${fixed(deviation(raw), 2)} (√d = ${fixed(Math.sqrt(d), 2)}), q·k/√d by ${fixed(deviation(scaled), 2)}; root mean square of ${raw.length} pairs.`;
  });
  const control = slider("d", clouds.map(({ d }) => String(d)), 6, (chosen) => {
    at = chosen;
    draw();
  });
  return lesson(
    "scale",
    "Why scores are divided by √d",
    says("Each dot is the dot product of a random query and a random key whose d components are independent, with mean 0 and variance 1. The sum of d such products has variance d, so the dots spread by √d. Divided by √d they spread by 1, however wide the head is."),
    control, place, told,
  );
}

const CLOUD_HEIGHT = 92;

/** Dots along a line; their height means nothing, it keeps them apart. */
function cloud(name, numbers, largest, width, colour) {
  const middle = width / 2;
  const x = (value) => middle + (value / largest) * (middle - 8);
  const dots = numbers.map((value, i) =>
    svgElement("circle", { cx: x(value).toFixed(1), cy: 22 + ((i * 37) % 48), r: 2.5, class: `dot line-${colour}` }),
  );
  const tick = (value) => svgElement("text", { class: "tick", x: x(value), y: CLOUD_HEIGHT - 2, "text-anchor": "middle" }, fixed(value, 0));
  const half = Math.round(largest / 2);
  return svgElement(
    "svg",
    { width, height: CLOUD_HEIGHT, role: "img", "aria-label": `${numbers.length} values of ${name}, root mean square ${fixed(deviation(numbers), 2)}` },
    svgElement("line", { class: "rule", x1: 0, x2: width, y1: CLOUD_HEIGHT - 16, y2: CLOUD_HEIGHT - 16 }),
    svgElement("text", { class: "tick", x: 2, y: 12 }, name),
    ...dots,
    ...[-half, 0, half].map(tick),
  );
}
