// Through which edges a behaviour runs: the circuit as a picture and in sentences, what it carries, and when it came.
import { circuitPicture, headOf } from "./circuit_picture.js";
import { curves } from "./curves.js";
import { dataTable, tableRow } from "./data_table.js";
import { element, fixed, withMinus } from "./elements.js";
import { term } from "./glossary.js";
import { command } from "./picture.js";

/** Rows of the table of edges; the CSV has all. */
const MOST_ROWS = 24;

/**
 * One circuit. `onHead(name)` hears of a head that was asked for, `onStep(step)` of a step of training. `cursor(step)`
 * marks the step that is on show.
 */
export function circuitView(circuit, { run, onHead, onStep = null }) {
  const picture = circuitPicture(circuit, { run, onHead });
  const curve = circuit.curve.length ? curves(curvePlot(circuit, run)) : null;
  const training = circuit.over_training ? curves(trainingPlot(circuit, run), onStep) : null;
  const node = element(
    "div",
    {},
    element("p", {}, withMinus(circuit.finding)),
    element("p", { class: "hint" }, withMinus(circuit.about)),
    element(
      "div",
      { class: "two" },
      picture.node,
      element("div", {}, sentences(circuit), edgeTable(circuit, onHead)),
    ),
    curve || training ? element("div", { class: "two" }, curve?.node ?? null, training?.node ?? null) : null,
    shares(circuit),
  );
  /** Marks the last kept step that is not later. */
  function cursor(step) {
    const kept = circuit.over_training?.steps.findLast((other) => other <= step);
    if (kept !== undefined) training.cursor(kept);
  }
  return { node, cursor };
}

function sentences({ sentences: all }) {
  if (!all.length) return null;
  return element(
    "div",
    {},
    element("h3", {}, "In sentences"),
    element("ul", { class: "sentences" }, all.map((sentence) => element("li", {}, sentence))),
  );
}

/** The edges of the circuit, or the largest of all where none was searched for. */
function edgeTable(circuit, onHead) {
  const hasCircuit = circuit.edges.some((edge) => edge.in_circuit);
  const listed = circuit.edges.filter((edge) => !hasCircuit || edge.in_circuit).slice(0, MOST_ROWS);
  const appeared = new Map((circuit.over_training?.edges ?? []).map((edge) => [`${edge.source} → ${edge.destination}`, edge]));
  const row = (edge) => {
    const name = `${edge.source} → ${edge.destination}`;
    const head = headOf(edge);
    const link = head ? element("button", { type: "button", class: "plain", onclick: () => onHead(head) }, name) : name;
    const when = appeared.get(name);
    const cells = [fixed(edge.effect, 2), `${fixed(edge.low, 2)} to ${fixed(edge.high, 2)}`];
    if (circuit.has_exact) cells.push(edge.exact === null ? "" : fixed(edge.exact, 2));
    if (appeared.size) cells.push(when ? `${when.after}–${when.by}` : "");
    return tableRow(link, cells, { "data-edge": name });
  };
  const columns = [term("edge"), "effect", "95 % interval"];
  if (circuit.has_exact) columns.push("patched");
  if (appeared.size) columns.push("appeared");
  const title = hasCircuit ? "Its edges" : "The edges of the largest effects";
  return element("div", {}, element("h3", {}, title), dataTable(title, columns, listed.map(row)));
}

/** What the first edges carry, beside random ones. */
function curvePlot({ curve, pairs, name }, run) {
  const line = (text, value, ends) => ({
    name: text,
    points: curve.map((point) => [point.edges, value(point)]),
    band: curve.map((point) => [point.edges, ...ends(point)]),
  });
  const lines = [
    line("the first edges by size of effect", ({ share }) => share, ({ low, high }) => [low, high]),
    line("random edges", ({ random: [, mean] }) => mean, ({ random: [least, , most] }) => [least, most]),
    line("random edges between the same layers", ({ same_layers: [, mean] }) => mean, ({ same_layers: [least, , most] }) => [least, most]),
  ];
  const values = lines.flatMap(({ band }) => band.flatMap(([, low, high]) => [low, high]));
  return {
    name: `How much of the behaviour edges carry, ${name}`,
    x: { name: "number of edges" },
    y: { name: "faithfulness f", low: Math.min(0, ...values), high: Math.max(1, ...values) },
    log: true,
    lines,
    levels: [{ name: "enough", value: 0.9 }],
    command: command(run, "circuit", "--pairs", pairs),
  };
}

/** The effect of each edge of the circuit at each step. */
function trainingPlot({ over_training: { steps, edges }, pairs, name }, run) {
  const lines = edges.map(({ source, destination, effects }) => ({
    name: `${source} → ${destination}`,
    points: effects.map(([effect], at) => [steps[at], effect]),
    band: effects.map(([, low, high], at) => [steps[at], low, high]),
  }));
  const values = lines.flatMap(({ band }) => band.flatMap(([, low, high]) => [low, high]));
  return {
    name: `When the edges of the circuit appeared, ${name}`,
    y: { name: "effect on m", low: Math.min(0, ...values), high: Math.max(0, ...values) },
    lines,
    command: command(run, "circuit", "--pairs", pairs, "--over-training"),
  };
}

/** Of a large graph: what shares of its edges carry. */
function shares({ shares: found }) {
  if (!found) return null;
  const row = (share, at) =>
    tableRow(`${fixed(100 * share, 1)} %`, [found.by_importance, found.by_size, found.random].map((values) => fixed(values[at], 2)));
  return element(
    "div",
    {},
    element("h3", {}, "What shares of the edges carry"),
    element("p", { class: "hint" }, `CPR ${fixed(found.cpr, 2)} (area of the first column; higher is better). CMD ${fixed(found.cmd, 2)} (area between the second and 1; lower is better).`),
    dataTable("What shares of the edges carry", ["edges", "most important first", "largest first", "random"], found.shares.map(row)),
  );
}
