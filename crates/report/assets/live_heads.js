// The heads of a run under way: what each looks like by now, and where it looks.
import { bytes, element, fixed } from "./elements.js";
import { heatmap, thumbnail } from "./heatmap.js";
import { mayAttend } from "./may_attend.js";

/** Layers of more heads than this take the width of the window. */
const MOST_BESIDE = 6;

/** `show(heads, patterns)`: rows of the heads' scores, and patterns or null where there are no newer ones. */
export function liveHeads({ n_heads: headsInLayer, window, measures }) {
  const grid = element("div", {
    class: "head-grid",
    style: `grid-template-columns: repeat(${headsInLayer}, minmax(4.6rem, 10rem))`,
  });
  const place = element("div", { class: "one-pattern" });
  const about = element("p", { class: "hint" }, "No pattern is written yet.");
  const buttons = new Map();
  let shown = null;
  let chosen = null;
  /** Until the reader chooses a head, the one that matters most by now is shown. */
  let isReadersChoice = false;
  let map = null;

  const attends = mayAttend(window);

  function patternOf(name) {
    const { step, tokens, weights } = shown;
    const weight = (query, key) => weights.get(name)[query * tokens.length + key] / 255;
    return { name: `${name} at step ${step}`, tokens, attends, weight };
  }

  function buttonOf(name) {
    if (!buttons.has(name)) {
      const parts = { words: element("small", {}), picture: element("div", {}) };
      const attributes = { type: "button", title: `Show ${name}`, onclick: () => chooseForGood(name) };
      parts.node = element("button", attributes, element("b", {}, name), parts.words, parts.picture);
      buttons.set(name, parts);
      grid.append(parts.node);
    }
    return buttons.get(name);
  }

  function chooseForGood(name) {
    isReadersChoice = true;
    choose(name);
  }

  function choose(name) {
    chosen = name;
    for (const [other, { node }] of buttons) node.setAttribute("aria-pressed", String(other === chosen));
    if (map) map.show(patternOf(chosen));
    else {
      map = heatmap(patternOf(chosen));
      place.append(map.node);
    }
  }

  function show(heads, patterns) {
    if (patterns) {
      shown = { ...patterns, weights: new Map(patterns.weights.map(([name, weights]) => [name, bytes(weights)])) };
      const cut = shown.tokens.length < shown.length ? `, its first ${shown.tokens.length} tokens` : "";
      about.textContent = `Patterns at step ${shown.step} on a probe sequence${cut}: a block of random tokens that comes again. A row a layer; a click shows a head large. Beside what a head looks like: its score over the whole probe with its 95 % interval, at most 1, and what evenly spread attention scores.`;
      for (const name of shown.weights.keys()) buttonOf(name).picture.replaceChildren(thumbnail(patternOf(name)));
    }
    for (const row of heads) if (buttons.has(row.head)) buttonOf(row.head).words.textContent = inWords(row);
    if (!shown) return;
    const next = isReadersChoice ? chosen : mostTelling(heads, measures) ?? [...shown.weights.keys()][0];
    if (patterns || next !== chosen) choose(next);
  }

  // Beside each other where half of a window is wide enough for the heads of a layer.
  const heads = element("div", {}, about, grid);
  return { node: element("div", { class: headsInLayer <= MOST_BESIDE ? "two" : null }, heads, place), show };
}

/** The first head of the role that takes most to tell; null while no head has one. */
function mostTelling(heads, measures) {
  for (const role of measures) {
    const found = heads.find((row) => row.role === role);
    if (found) return found.head;
  }
  return null;
}

/** The role, its score with its interval, and what evenly spread attention scores. */
function inWords({ role, scores }) {
  const score = scores[role];
  if (!score) return role;
  const half = fixed((score.high - score.low) / 2, 2);
  return `${role} ${fixed(score.value, 2)}±${half} (evenly spread: ${fixed(score.null, 2)})`;
}
