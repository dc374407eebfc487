// An attention pattern: rows are queries, columns are keys, tokens on both axes.
import { css, inkOn, themeColour, weightColour, weightLegend } from "./colour.js";
import { element, fixed, short, svgElement, toggle, visible } from "./elements.js";
import { cellImage, grid } from "./grid.js";

/** The share of a head's weights that its own colour scale ends at. */
const SCALE_ENDS_AT = 0.98;

/**
 * A pattern to look into. `pattern` is `{name, tokens, weight(query, key), attends(query, key), rings?: [[query, key]]}`:
 * `attends` says which keys the mask leaves, `rings` marks pairs. The pointer shows one weight, over a row's token all
 * that a query looks at, over a column's all that look at a key; a click locks. `onPick` hears the locked place or null.
 * `show(pattern)` changes what is drawn and keeps the lock.
 */
export function heatmap(pattern, { onPick = () => {} } = {}) {
  const readout = element("p", { class: "readout", "aria-live": "polite" });
  const strip = element("div", { class: "strip" });
  let shown = pattern;
  let pointed = null;
  let picked = null;
  let isOwnScale = false;
  let most = 1;
  let legend = weightLegend();

  const colour = (weight) => weightColour(weight / most);
  const cells = grid({
    view: () => ({
      rows: shown.tokens.length,
      columns: shown.tokens.length,
      colour: (query, key) => (shown.attends(query, key) ? colour(shown.weight(query, key)) : null),
      rowLabels: shown.tokens,
      columnLabels: shown.tokens,
      rings: shown.rings,
      label: `${shown.name}. Rows are queries, columns are keys. Arrow keys move, Enter locks, Escape unlocks.`,
    }),
    onPoint: (place) => {
      pointed = place;
      tell();
    },
    onPick: (place) => {
      picked = place;
      tell();
      onPick(place);
    },
  });

  function tell() {
    const place = pointed ?? picked;
    readout.textContent = describe(shown, place) + (picked && !pointed ? " (locked)" : "");
    paintStrip(strip, shown, colour, place, (query) => cells.pick(query === null ? null : { row: query, column: null }));
  }

  function rescale() {
    most = isOwnScale ? ownScale(shown) : 1;
    const next = weightLegend("attention weight", true, most);
    legend.replaceWith(next);
    legend = next;
  }

  function show(next) {
    shown = next;
    const beyond = (at) => at !== null && at >= next.tokens.length;
    if (picked && (beyond(picked.row) || beyond(picked.column))) cells.pick(null);
    pointed = null;
    rescale();
    cells.draw();
    tell();
  }

  const scale = toggle("a colour scale of its own", false, (on) => {
    isOwnScale = on;
    show(shown);
  });
  scale.title = "A head that spreads its attention is dark all over. With this the last colour is a weight that few of its cells pass.";
  tell();
  const scales = element("div", { class: "scales" }, legend, scale);
  return {
    node: element("div", { class: "heatmap" }, cells.node, scales, readout, arrows(cells.nudge), strip),
    show,
    lock: cells.pick,
  };
}

/** The weight that few cells of a pattern pass. A first query sees itself alone, so its 1 says nothing. */
export function ownScale({ tokens, weight, attends }) {
  const weights = [];
  for (let query = 1; query < tokens.length; query++) {
    for (let key = 0; key <= query; key++) if (attends(query, key)) weights.push(weight(query, key));
  }
  weights.sort((a, b) => a - b);
  return weights[Math.floor(SCALE_ENDS_AT * (weights.length - 1))] || 1;
}

/** For fingers, which cannot point at one small cell: a tap chooses, these move. */
function arrows(nudge) {
  const button = (text, name, down, right) =>
    element("button", { type: "button", "aria-label": `One ${name}`, onclick: () => nudge(down, right) }, text);
  return element(
    "div",
    { class: "arrows", role: "group", "aria-label": "Move to the next cell" },
    button("←", "key back", 0, -1),
    button("↑", "query back", -1, 0),
    button("↓", "query on", 1, 0),
    button("→", "key on", 0, 1),
  );
}

/** The same pattern small, as a picture without words, on `canvas` where there is one already; the last colour is the weight `most`. */
export function thumbnail({ tokens, weight, attends }, most = 1, canvas = undefined) {
  const colour = (query, key) => (attends(query, key) ? weightColour(weight(query, key) / most) : null);
  const image = cellImage(tokens.length, tokens.length, colour, canvas);
  image.className = "thumbnail";
  image.setAttribute("aria-hidden", "true");
  return image;
}

/** The pattern as an SVG that stands alone. */
export function patternSvg({ name, tokens, weight, attends, rings = [] }) {
  const cell = 10;
  const margin = { left: 64, top: 86 };
  const side = cell * tokens.length;
  const ink = themeColour("--ink");
  const words = (attributes, text) =>
    svgElement("text", { fill: ink, "font-family": "monospace", "font-size": 9, ...attributes }, text);
  const parts = [svgElement("rect", { width: "100%", height: "100%", fill: themeColour("--paper") })];
  parts.push(words({ x: 6, y: 16, "font-size": 13 }, name));
  tokens.forEach((token, at) => {
    const [x, y] = [margin.left + cell * at, margin.top + cell * at];
    parts.push(words({ x: margin.left - 4, y: y + 8, "text-anchor": "end" }, short(token)));
    parts.push(words({ transform: `translate(${x + 8} ${margin.top - 4}) rotate(-90)` }, short(token)));
    for (let key = 0; key <= at; key++) {
      if (!attends(at, key)) continue;
      const fill = css(weightColour(weight(at, key)));
      parts.push(svgElement("rect", { x: margin.left + cell * key, y, width: cell, height: cell, fill }));
    }
  });
  for (const [query, key] of rings) {
    const at = { x: margin.left + cell * key, y: margin.top + cell * query, width: cell, height: cell };
    parts.push(svgElement("rect", { ...at, fill: "none", stroke: themeColour("--mark"), "stroke-width": 2 }));
  }
  const size = { width: margin.left + side + 8, height: margin.top + side + 8 };
  return svgElement("svg", { ...size, xmlns: "http://www.w3.org/2000/svg" }, parts);
}

/** The pattern as rows of a table: a row for each pair that may attend. */
export function patternRows({ tokens, weight, attends }) {
  const rows = [["query", "query token", "key", "key token", "weight"]];
  tokens.forEach((token, query) => {
    for (let key = 0; key <= query; key++) {
      if (attends(query, key)) rows.push([query, token, key, tokens[key], Number(weight(query, key).toFixed(6))]);
    }
  });
  return rows;
}

/** In words: a weight, or what a query looks at most, or who looks at a key most. */
function describe({ tokens, weight, attends }, place) {
  if (!place) return "Point at a cell, or at a token on either axis; a click locks, another click or Escape unlocks.";
  const name = (kind, at) => `${kind} ${at} ${visible(tokens[at])}`;
  const { row: query, column: key } = place;
  if (query !== null && key !== null) {
    const found = attends(query, key) ? fixed(weight(query, key), 3) : "masked";
    return `${name("query", query)} → ${name("key", key)}: ${found}`;
  }
  const others = [...tokens.keys()].filter((at) => (query === null ? attends(at, key) : attends(query, at)));
  const of = (at) => (query === null ? weight(at, key) : weight(query, at));
  const most = others.sort((a, b) => of(b) - of(a)).slice(0, 3);
  const listed = most.map((at) => `${name(query === null ? "query" : "key", at)} ${fixed(of(at), 3)}`).join(", ");
  return query === null
    ? `${name("key", key)} is looked at most by ${listed}`
    : `${name("query", query)} looks most at ${listed}`;
}

/** The tokens in a line, shaded by what the query looks at, or by how much each looks at the key. */
function paintStrip(strip, { tokens, weight, attends }, shade, place, onChoose) {
  if (strip.childElementCount !== tokens.length || strip.tokens !== tokens) {
    strip.tokens = tokens;
    const token = (text, at) =>
      element(
        "button",
        { type: "button", title: `token ${at}`, tabindex: "-1", onclick: () => onChoose(at) },
        short(text),
      );
    strip.replaceChildren(...tokens.map(token));
  }
  const of = (at) => {
    if (!place) return null;
    if (place.row !== null) return attends(place.row, at) ? weight(place.row, at) : null;
    return attends(at, place.column) ? weight(at, place.column) : null;
  };
  [...strip.children].forEach((node, at) => {
    const found = of(at);
    const colour = found === null ? null : shade(found);
    node.style.background = colour ? css(colour) : "";
    node.style.color = colour ? inkOn(colour) : "";
    node.classList.toggle("here", place !== null && (place.row ?? place.column) === at);
  });
}
