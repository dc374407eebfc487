// An attention pattern: rows are queries, columns are keys, tokens on both axes.
import { css, inkOn, weightColour, weightLegend } from "./colour.js";
import { element, fixed, short, visible } from "./elements.js";
import { cellImage, grid } from "./grid.js";

/**
 * A pattern to look into. `pattern` is `{name, tokens, weight(query, key), attends(query, key)}`: `attends` says which
 * keys the mask leaves. The pointer shows one weight, over a row's token all that a query looks at, over a column's all
 * that look at a key; a click locks. `onPick` hears the locked place or null. `show(pattern)` changes what is drawn and
 * keeps the lock.
 */
export function heatmap(pattern, { onPick = () => {} } = {}) {
  const readout = element("p", { class: "readout", "aria-live": "polite" });
  const strip = element("div", { class: "strip" });
  let shown = pattern;
  let pointed = null;
  let picked = null;

  const cells = grid({
    view: () => ({
      rows: shown.tokens.length,
      columns: shown.tokens.length,
      colour: (query, key) => (shown.attends(query, key) ? weightColour(shown.weight(query, key)) : null),
      rowLabels: shown.tokens,
      columnLabels: shown.tokens,
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
    paintStrip(strip, shown, place, (query) => cells.pick(query === null ? null : { row: query, column: null }));
  }

  function show(next) {
    shown = next;
    const beyond = (at) => at !== null && at >= next.tokens.length;
    if (picked && (beyond(picked.row) || beyond(picked.column))) cells.pick(null);
    pointed = null;
    cells.draw();
    tell();
  }

  tell();
  return {
    node: element("div", { class: "heatmap" }, cells.node, weightLegend(), readout, strip),
    show,
    lock: cells.pick,
  };
}

/** The same pattern small, as a picture without words. */
export function thumbnail({ tokens, weight, attends }) {
  const colour = (query, key) => (attends(query, key) ? weightColour(weight(query, key)) : null);
  const image = cellImage(tokens.length, tokens.length, colour);
  image.className = "thumbnail";
  image.setAttribute("aria-hidden", "true");
  return image;
}

/** In words: a weight, or what a query looks at most, or who looks at a key most. */
function describe({ tokens, weight, attends }, place) {
  if (!place) return "Point at a cell, or at a token on either axis; click to lock.";
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
function paintStrip(strip, { tokens, weight, attends }, place, onChoose) {
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
    const colour = found === null ? null : weightColour(found);
    node.style.background = colour ? css(colour) : "";
    node.style.color = colour ? inkOn(colour) : "";
    node.classList.toggle("here", place !== null && (place.row ?? place.column) === at);
  });
}
