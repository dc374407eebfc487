// Every head: patterns in rows of layers where they are few, a map to search and sort where they are many.
import { element, fixed, inSightFirst, toggle } from "./elements.js";
import { ownScale, thumbnail } from "./heatmap.js";
import { headName, headsInLayer, layerOf, patternIndexFor, patternOf, roleOf, scoreAt, seriesOf } from "./report_data.js";
import { KIND, ROLE } from "./vocabulary.js";

/** So many patterns are all drawn. */
const MOST_DRAWN = 32;
const COLOURS = 8;
const roles = Object.values(ROLE);
/** A row a layer; layers of one head stand side by side. */
const columns = headsInLayer > 1 ? headsInLayer : Math.min(pageData.heads.length, 4);

/** The heads at the step, on the sequence and with the score on show. */
export function headGrid(state) {
  const all = [...pageData.heads.keys()];
  const small = element("div", { class: "head-grid" });
  const buttons = new Map();
  let isOwnScale = false;
  let drawn = [];

  function score(head) {
    const series = seriesOf(state.kind, state.score);
    const found = series && scoreAt(series, pageData.steps.indexOf(state.step), head);
    return found ? found[0] : null;
  }

  function buttonOf(head) {
    if (!buttons.has(head)) buttons.set(head, headButton(state, head));
    return buttons.get(head);
  }

  function paint() {
    for (const head of drawn) buttonOf(head).paint(score(head), isOwnScale);
  }

  function draw(heads) {
    drawn = heads;
    small.replaceChildren(...drawn.map((head) => buttonOf(head).node));
    paint();
  }

  function mark() {
    for (const head of drawn) buttonOf(head).mark();
  }

  state.onHead.push(mark);
  const repaint = inSightFirst(small, paint);
  state.onSequence.push(repaint);
  const scale = toggle("a colour scale for each", false, (on) => {
    isOwnScale = on;
    paint();
  });
  if (all.length <= MOST_DRAWN) {
    for (const list of [state.onStep, state.onScore]) list.push(repaint);
    small.style.gridTemplateColumns = `repeat(${columns}, minmax(4.6rem, 11rem))`;
    draw(all);
    return element("div", {}, small, scale);
  }
  small.style.gridTemplateColumns = "repeat(auto-fill, minmax(5.5rem, 1fr))";
  const finder = headFinder(state, score, (found) => draw(found.slice(0, MOST_DRAWN)));
  return element("div", {}, finder, small, scale);
}

/** A head's button: its name, its score and its pattern, which is drawn anew only where another one is shown. */
function headButton(state, head) {
  const told = element("small");
  const node = element(
    "button",
    { type: "button", title: `Show ${headName(head)}, ${roleOf(head)}`, onclick: () => state.choose(head) },
    element("b", {}, headName(head)),
    told,
  );
  let [shown, canvas] = [null, undefined];

  function paint(score, isOwnScale) {
    told.textContent = score === null ? "" : `${state.score} ${fixed(score, 2)}`;
    mark();
    const at = patternIndexFor(state.sequence, state.step);
    const wanted = `${state.sequence} ${at} ${isOwnScale}`;
    if (wanted === shown) return;
    shown = wanted;
    if (at === null) return canvas?.remove();
    const pattern = patternOf(state.sequence, at, head);
    canvas = thumbnail(pattern, isOwnScale ? ownScale(pattern) : 1, canvas);
    node.append(canvas);
  }

  function mark() {
    node.setAttribute("aria-pressed", String(head === state.head));
  }

  return { node, paint, mark };
}

/** The map of all heads, and which of them are drawn: `onFound` hears them, in their order. */
function headFinder(state, score, onFound) {
  const all = [...pageData.heads.keys()];
  const told = element("p", { class: "hint", "aria-live": "polite" });
  const search = element("input", { type: "text", placeholder: "L17 or induction", "aria-label": "Search heads", oninput: find });
  const orders = { score: "the score on show", cost: "what it costs to remove", layer: "layer" };
  const order = element(
    "select",
    { "aria-label": "Sort heads", onchange: find },
    Object.entries(orders).map(([value, text]) => element("option", { value }, `sorted by ${text}`)),
  );
  const costs = costsOfHeads();
  const map = element("div", { class: "head-map", style: `grid-template-columns: 2.2rem repeat(${headsInLayer}, minmax(1.1rem, 2.4rem))` });
  const cells = all.map((head) => {
    const words = () => `${headName(head)}, ${roleOf(head)}, ${state.score} ${fixed(score(head), 2)}, costs ${fixed(costs[head], 3)}`;
    return element("button", {
      type: "button",
      "aria-pressed": "false",
      class: `line-${roles.indexOf(roleOf(head)) % COLOURS}${roleOf(head) === ROLE.mixed ? " none" : ""}`,
      "aria-label": `${headName(head)} ${roleOf(head)}`,
      onclick: () => state.choose(head),
      onpointerenter: (event) => event.target.setAttribute("title", words()),
    });
  });
  cells.forEach((cell, head) => {
    if (head % headsInLayer === 0) map.append(element("span", { class: "tick" }, `L${layerOf(head)}`));
    map.append(cell);
  });

  function find() {
    const wanted = search.value.trim().toLowerCase();
    const matches = all.filter((head) => `${headName(head)} ${roleOf(head)}`.toLowerCase().includes(wanted));
    const by = { score: (head) => -(score(head) ?? -1), cost: (head) => -(costs[head] ?? -1), layer: (head) => head };
    const place = new Map(matches.map((head) => [head, by[order.value](head)]));
    matches.sort((a, b) => place.get(a) - place.get(b) || a - b);
    const isFound = new Set(matches);
    cells.forEach((cell, head) => cell.classList.toggle("other", !isFound.has(head)));
    told.textContent = `${matches.length} of ${all.length} heads; the first ${Math.min(matches.length, MOST_DRAWN)} are drawn.`;
    onFound(matches);
  }

  function roleScore(head) {
    const series = seriesOf(KIND.probe, roleOf(head));
    const found = series && scoreAt(series, pageData.steps.indexOf(state.step), head);
    return found ? Math.min(found[0], 1) : 0;
  }

  function mark() {
    map.querySelector('[aria-pressed="true"]')?.setAttribute("aria-pressed", "false");
    cells[state.head].setAttribute("aria-pressed", "true");
  }

  /** A weak role is pale, so that a map of many heads shows where roles are held. */
  function shade() {
    cells.forEach((cell, head) => (cell.style.opacity = roleOf(head) === ROLE.mixed ? 0.2 : Math.max(roleScore(head), 0.3)));
  }
  state.onHead.push(mark);
  state.onStep.push(shade);
  for (const list of [state.onStep, state.onScore]) list.push(inSightFirst(map, find));
  shade();
  mark();
  find();
  const item = (role) =>
    element("li", {}, element("span", { class: `swatch line-${roles.indexOf(role) % COLOURS}${role === ROLE.mixed ? " none" : ""}`, "aria-hidden": "true" }), role);
  const held = roles.filter((role) => all.some((head) => roleOf(head) === role));
  return element(
    "div",
    {},
    element("ul", { class: "key" }, held.map(item)),
    map,
    element("div", { class: "controls" }, search, order),
    told,
  );
}

/** `[head]`: how much accuracy falls without each head alone, or null. */
function costsOfHeads() {
  const row = pageData.uses.at(-1);
  return pageData.heads.map(([name]) => {
    const alone = row?.uses.find(({ heads, ablated }) => heads.length === 1 && heads[0] === name && ablated);
    return alone ? row.untouched.accuracy - alone.ablated.accuracy : null;
  });
}
