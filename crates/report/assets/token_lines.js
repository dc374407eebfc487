// A pattern as lines between two columns of tokens: each query on the left, the keys it looks at on the right.
import { drawnForWidth, element, fixed, short, svgElement, visible } from "./elements.js";
import { exports, standalone } from "./picture.js";

const ROW = 17;
const EDGE = 110;
/** Lines of less weight than this are not seen, and are many. */
const LEAST_WEIGHT = 0.03;
/** How wide a line of weight 1 is. A weak line is a pixel wide and pale: a browser draws wider ones slowly. */
const WIDEST = 3.25;
/** Of more lines the strongest are drawn, until a token is chosen: a browser takes long to draw the pale ones. */
const MOST_LINES = 300;

/** Where the row of a token stands. */
const y = (at) => ROW * (at + 1);

/** `pattern` is that of a heat map. A token chosen by pointer, finger or keyboard shows its own lines alone. */
export function tokenLines(pattern, command = null) {
  const readout = element("p", { class: "readout", "aria-live": "polite" });
  const place = element("div", { class: "token-lines" });
  let shown = pattern;
  let pointed = null;
  let locked = null;
  let drawn = null;
  let wide = 0;
  let lines = [];
  let strongest = [];
  let links = null;
  let painted = null;

  const draw = drawnForWidth(place, (width) => {
    const { tokens } = shown;
    wide = Math.min(width, 560);
    lines = linesOf(shown);
    drawn = svgElement("svg", { width: wide, height: ROW * (tokens.length + 1), role: "group", "aria-label": shown.name });
    strongest = lines.filter(({ isStrong }) => isStrong).map(link);
    links = svgElement("g");
    drawn.append(links);
    tokens.forEach((token, at) => {
      drawn.append(word(token, { query: at, key: null }, { x: EDGE - 6, y: y(at), "text-anchor": "end" }));
      drawn.append(word(token, { query: null, key: at }, { x: wide - EDGE + 6, y: y(at) }));
    });
    place.replaceChildren(drawn);
    paint();
  });

  function link({ query, key, weight, isGold }) {
    return svgElement("line", {
      class: isGold ? "link gold" : "link",
      x1: EDGE,
      y1: y(query),
      x2: wide - EDGE,
      y2: y(key),
      "stroke-opacity": Math.max(weight, isGold ? 0.25 : 0),
      "stroke-width": Math.max(WIDEST * weight, 1),
    });
  }

  function word(token, place_, attributes) {
    const kind = place_.query === null ? "key" : "query";
    const at = place_.query ?? place_.key;
    const point = (value) => () => {
      pointed = value;
      choose();
    };
    const lock = () => {
      locked = same(locked, place_) ? null : place_;
      choose();
    };
    return svgElement(
      "text",
      {
        class: "token",
        dy: 4,
        tabindex: "0",
        role: "button",
        "aria-label": `${kind} ${at} ${visible(token)}`,
        onpointerenter: point(place_),
        onpointerleave: point(null),
        onfocus: point(place_),
        onblur: point(null),
        onclick: lock,
        onkeydown: (event) => {
          if (event.key === "Enter" || event.key === " ") lock();
          else if (event.key === "Escape") {
            locked = null;
            choose();
          } else return;
          event.preventDefault();
        },
        ...attributes,
      },
      `${short(token, 12)}`,
    );
  }

  /** A token that is pointed at is chosen, pressed and locked in one: its lines are drawn once. */
  function choose() {
    if (!same(painted, pointed ?? locked)) paint();
  }

  function paint() {
    const chosen = pointed ?? locked;
    painted = chosen;
    if (!chosen) {
      links?.replaceChildren(...strongest);
      readout.textContent = "Point at a token to see its lines alone; a click keeps them.";
      return;
    }
    const own = lines.filter(({ query, key }) => query === chosen.query || key === chosen.key);
    own.sort((a, b) => b.weight - a.weight);
    links?.replaceChildren(...own.map(link));
    readout.textContent = told(shown, chosen, own);
  }

  paint();
  return {
    node: element(
      "div",
      {},
      element("p", { class: "hint" }, `Left: queries. Right: the keys they look at. A line is as strong as its weight; of many, the ${MOST_LINES} strongest are drawn.`),
      place,
      exports({ name: () => `${shown.name} lines`, svg: () => standalone(drawn, shown.name), command }),
      readout,
    ),
    show(next) {
      if (next.tokens.length !== shown.tokens.length) locked = null;
      shown = next;
      draw();
    },
  };
}

const same = (a, b) => a?.query === b?.query && a?.key === b?.key;

/** The pairs that are seen, and those that the task knows; of many, which are the strongest. */
function linesOf({ tokens, weight, attends, rings = [] }) {
  const lines = [];
  const gold = new Set(rings.map(([from, to]) => `${from} ${to}`));
  for (let query = 0; query < tokens.length; query++) {
    for (let key = 0; key <= query; key++) {
      const isGold = gold.size > 0 && gold.has(`${query} ${key}`);
      const found = attends(query, key) ? weight(query, key) : 0;
      if (found >= LEAST_WEIGHT || isGold) lines.push({ query, key, weight: found, isGold });
    }
  }
  const byWeight = [...lines].sort((a, b) => b.weight - a.weight);
  byWeight.forEach((line, rank) => (line.isStrong = rank < MOST_LINES || line.isGold));
  return lines;
}

function told({ tokens }, { query, key }, own) {
  const [kind, at] = query === null ? ["key", key] : ["query", query];
  const other = (line) => (query === null ? line.query : line.key);
  const listed = own.slice(0, 5).map((line) => `${other(line)} ${visible(tokens[other(line)])} ${fixed(line.weight, 3)}`);
  const verb = query === null ? "is looked at by queries" : "looks at keys";
  return `${kind} ${at} ${visible(tokens[at])} ${verb} ${listed.join(", ") || "none with a weight that is seen"}`;
}
