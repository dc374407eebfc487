// A circuit as a picture to click on: which part reads which, how much that matters, and for or against the answer.
import { BOX, entriesOf, layoutOf, partOf, pathOf } from "./circuit_layout.js";
import { themeColour } from "./colour.js";
import { choice, drawnForWidth, element, fixed, svgElement } from "./elements.js";
import { command, exports, standalone } from "./picture.js";

const WIDEST = 8;
/** Of every edge, those are drawn whose importance is at least this share of the largest. */
const LEAST_SHARE = 0.01;
const HOW = "Point at an edge for its effect. A click on a head, or on an edge into one, shows where this head looks and why.";

/** The head that an edge tells of: the one that reads, or else the one that writes; null where there is none. */
export function headOf({ source, destination }) {
  const [from, to] = [partOf(source), partOf(destination)];
  if (to.kind === "head") return to.name;
  return from.kind === "head" ? from.name : null;
}

/** `L0H1 → keys of L1H0: effect −12.03 (95 % interval −13.1 to −10.9) on m` */
export function edgeInWords({ source, destination, effect, low, high }) {
  return `${source} → ${destination}: effect ${fixed(effect, 2)} on m (95 % interval ${fixed(low, 2)} to ${fixed(high, 2)})`;
}

/** The picture of `circuit`; `onHead(name)` hears of a click that asks for a head. `run` names the run in commands. */
export function circuitPicture(circuit, { run, onHead }) {
  const place = element("div", { class: "circuit-picture" });
  const readout = element("p", { class: "readout", "aria-live": "polite" }, HOW);
  const hasCircuit = circuit.edges.some((edge) => edge.in_circuit);
  let isWhole = !hasCircuit;
  let drawn = null;
  const title = () => (isWhole ? `The edges of the largest effects, ${circuit.name}` : `The circuit, ${circuit.name}`);

  const draw = drawnForWidth(place, (width) => {
    const edges = shown(circuit.edges, isWhole);
    const layout = layoutOf(circuit, edges, width);
    const largest = Math.max(...edges.map(({ importance }) => Math.abs(importance)), 1e-12);
    // Thin lines stay visible over wide ones.
    const bySize = [...edges].sort((a, b) => Math.abs(b.importance) - Math.abs(a.importance));
    drawn = svgElement(
      "svg",
      { width: layout.width, height: layout.height, role: "group", "aria-label": title() },
      bySize.map((edge) => drawnEdge(layout, edge, largest)),
      layout.parts.map((part) => drawnPart(layout, part)),
    );
    place.replaceChildren(drawn);
  });

  function drawnEdge(layout, edge, largest) {
    const path = pathOf(layout, edge);
    const width = Math.max((Math.abs(edge.importance) / largest) * WIDEST, 1);
    const sign = edge.importance < 0 ? "against" : "for";
    const group = { class: `edge ${sign}`, "data-edge": `${edge.source} → ${edge.destination}` };
    return svgElement(
      "g",
      { ...group, ...asking(headOf(edge), edgeInWords(edge)) },
      svgElement("title", {}, edgeInWords(edge)),
      svgElement("path", { class: "hit", d: path }),
      svgElement("path", { class: "drawn", d: path, "stroke-width": width.toFixed(1) }),
    );
  }

  function drawnPart(layout, part) {
    const { x, y, name, kind, isUsed } = part;
    const names = { "feed-forward": `MLP ${part.layer}` };
    const group = { class: isUsed ? "part" : "part unused", "data-part": name };
    const head = kind === "head" ? name : null;
    return svgElement(
      "g",
      { ...group, ...(head ? asking(head, `${head}: show where it looks and why`) : {}) },
      svgElement("rect", { x: x - layout.box / 2, y: y - BOX.height / 2, width: layout.box, height: BOX.height, rx: 5 }),
      svgElement("text", { x, y: y + (head && isUsed ? 0 : 4), "text-anchor": "middle" }, names[kind] ?? name),
      head && isUsed
        ? entriesOf(part, layout.box).map((entry) =>
            svgElement("text", { class: "entry", x: entry.x, y: entry.y, "text-anchor": "middle" }, entry.name),
          )
        : null,
    );
  }

  /** What makes a part of the picture tell its words, and lead to a head. */
  function asking(head, words) {
    const tell = () => (readout.textContent = words);
    const forget = () => (readout.textContent = HOW);
    const heard = { onpointerenter: tell, onfocus: tell, onpointerleave: forget, onblur: forget };
    if (head === null) return { ...heard, tabindex: "0", role: "img", "aria-label": words };
    const press = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      onHead(head);
    };
    return { ...heard, tabindex: "0", role: "link", "aria-label": words, onclick: () => onHead(head), onkeydown: press };
  }

  const whole = choice(
    "Edges that are drawn",
    [
      { value: false, text: "the circuit" },
      { value: true, text: "every edge above 1 % of the largest" },
    ],
    isWhole,
    (value) => {
      isWhole = value;
      draw();
    },
  );
  const files = exports({
    name: title,
    svg: () => standalone(drawn, title(), legendLines()),
    csv: () => rowsOf(circuit.edges),
    command: command(run, "circuit", "--pairs", circuit.pairs, "--svg", "circuit.svg"),
  });
  return {
    node: element("figure", { class: "circuit" }, hasCircuit ? whole.node : null, place, legend(), readout, files),
  };
}

/** The edges that are drawn. */
function shown(edges, isWhole) {
  if (!isWhole) return edges.filter((edge) => edge.in_circuit);
  const largest = Math.max(...edges.map(({ importance }) => Math.abs(importance)));
  return edges.filter(({ importance }) => Math.abs(importance) >= LEAST_SHARE * largest);
}

function legend() {
  const item = (name, text) => element("li", {}, element("span", { class: `swatch ${name}`, "aria-hidden": "true" }), text);
  return element(
    "ul",
    { class: "key" },
    item("for", "carries the answer"),
    item("against", "works against it (dashed)"),
    element("li", {}, "the wider, the larger the effect; an edge enters a head at its queries (q), keys (k) or values (v)"),
  );
}

const legendLines = () => [
  { text: "carries the answer; the wider, the larger the effect", colour: themeColour("--positive"), dash: null },
  { text: "works against it", colour: themeColour("--negative"), dash: "6 4" },
];

function rowsOf(edges) {
  const rows = edges.map(({ source, destination, effect, low, high, in_circuit: isIn }) => [source, destination, effect, low, high, isIn]);
  return [["source", "destination", "effect", "low", "high", "in circuit"], ...rows];
}
