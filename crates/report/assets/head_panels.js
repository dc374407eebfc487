// Small multiples: a panel for each head, with all scores that can be its role over training.
import { drawnForWidth, element, svgElement } from "./elements.js";
import { term } from "./glossary.js";
import { exports, standalone } from "./picture.js";
import { headName, headsInLayer, layerOf, measureOf, roleOf, scoreAt, seriesOf } from "./report_data.js";
import { isFollowed } from "./report_state.js";
import { KIND, ROLE } from "./vocabulary.js";

const PANEL = { least: 92, left: 18, top: 20, right: 8, bottom: 16 };
/** A panel is so much as high as it is wide, within bounds. */
const HEIGHT = { share: 0.62, least: 100, most: 170 };
const COLOURS = 8;

const { relations } = pageData;
/** Where the task knows what depends on what, how heads follow that; else the scores that can be a role, as roles are told. */
const kind = relations.length ? KIND.task : KIND.probe;
const names = relations.length
  ? relations.map(({ name }) => name)
  : Object.values(ROLE).filter((name) => measureOf(name)?.is_role);
/** The places of the scores are their colours. */
const told = names.map((name, at) => ({ name, at, series: seriesOf(kind, name) })).filter(({ series }) => series);

/** Panels of `heads`, indices into the list of heads; a click on one chooses its head. `ranges` names roles of parts. */
export function headPanels(state, heads, command) {
  const place = element("div", { class: "panels" });
  let drawn = null;
  drawnForWidth(place, (width) => {
    const columns = columnsFor(heads, width);
    const wide = width / columns;
    const rows = Math.ceil(heads.length / columns);
    const high = Math.min(Math.max(HEIGHT.share * wide, HEIGHT.least), HEIGHT.most);
    drawn = svgElement("svg", { width, height: rows * high, role: "group", "aria-label": "Scores of the heads over training" });
    heads.forEach((head, at) => {
      const corner = [(at % columns) * wide, Math.floor(at / columns) * high];
      drawn.append(panel(state, head, { corner, wide, high }));
    });
    place.replaceChildren(drawn);
  });
  state.onHead.push(() => {
    heads.forEach((head, at) => drawn?.children[at]?.classList.toggle("here", head === state.head));
  });
  const item = ({ name, at }) =>
    element("li", {}, element("span", { class: `swatch line-${at % COLOURS}`, "aria-hidden": "true" }), name);
  return element(
    "figure",
    { class: "curves", id: "panels" },
    element("ul", { class: "key" }, told.map(item)),
    place,
    element("p", { class: "hint" }, "Across: steps, logarithmic. Up: score from 0 to 1. Dotted: ", term("evenly", "evenly spread attention"), "."),
    exports({
      name: "scores of the heads",
      svg: () => standalone(drawn, `${pageData.run.name}: scores of the heads on the ${kind}`, legend()),
      csv: () => table(heads),
      command: relations.length ? null : command,
    }),
  );
}

/** A row a layer where that fits. */
function columnsFor(heads, width) {
  const most = Math.max(Math.floor(width / PANEL.least), 1);
  const isWhole = heads.length === pageData.heads.length;
  if (isWhole && headsInLayer <= most) return headsInLayer;
  return Math.min(most, heads.length);
}

function panel(state, head, { corner: [x, y], wide, high }) {
  const { steps } = pageData;
  const [left, top] = [x + PANEL.left, y + PANEL.top];
  const [across, up] = [Math.max(wide - PANEL.left - PANEL.right, 10), high - PANEL.top - PANEL.bottom];
  const logged = steps.filter((step) => step > 0);
  const [first, last] = [logged[0] ?? 1, logged.at(-1) ?? 1];
  const span = Math.log(last / first) || 1;
  const alongX = (step) => left + (across * Math.log(step / first)) / span;
  const alongY = (value) => top + up * (1 - Math.min(Math.max(value, 0), 1));
  const role = roleNames(head);
  const text = (attributes, words) => svgElement("text", { class: "tick", ...attributes }, words);
  const choose = () => state.choose(head);
  const group = svgElement(
    "g",
    {
      class: state.head === head ? "panel here" : "panel",
      tabindex: "0",
      role: "button",
      "aria-label": `${headName(head)}, ${roleOf(head)}`,
      onclick: choose,
      onkeydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose();
      },
    },
    svgElement("title", {}, `${headName(head)}: ${role.words || roleOf(head)}. A click shows its pattern.`),
    svgElement("rect", { class: "ground", x: x + 1, y: y + 1, width: wide - 2, height: high - 4, rx: 3 }),
    text({ class: "tick name", x: left, y: y + 14 }, `${headName(head)} ${shortened(role.words, wide)}`),
    ...[0, 1].flatMap((value) => [
      svgElement("line", { class: "rule", x1: left, x2: left + across, y1: alongY(value), y2: alongY(value) }),
      text({ x: left - 4, y: alongY(value) + 4, "text-anchor": "end" }, String(value)),
    ]),
    text({ x: left, y: top + up + 12 }, String(first)),
    text({ x: left + across, y: top + up + 12, "text-anchor": "end" }, String(last)),
  );
  const at = ([step, value]) => `${alongX(step).toFixed(1)},${alongY(value).toFixed(1)}`;
  for (const { name, at: colour, series } of told) {
    const isRole = role.names.includes(name);
    const points = steps.map((step, index) => [step, scoreAt(series, index, head)]);
    const known = points.filter(([step, found]) => step > 0 && found);
    const drawn = `line line-${colour % COLOURS}${isRole ? "" : " faint"}`;
    if (isRole) {
      const level = alongY(series.null);
      const ends = [1, 2].map((end) => known.map(([step, found]) => at([step, found[end]])));
      group.append(
        svgElement("polygon", { class: `band line-${colour % COLOURS}`, points: [...ends[1], ...ends[0].reverse()].join(" ") }),
        svgElement("line", { class: `null line-${colour % COLOURS}`, x1: left, x2: left + across, y1: level, y2: level }),
      );
    }
    const line = known.map(([step, [value]]) => [step, value]);
    group.append(
      line.length === 1
        ? svgElement("circle", { class: `dot ${drawn}`, cx: alongX(line[0][0]), cy: alongY(line[0][1]), r: 3 })
        : svgElement("polyline", { class: drawn, points: line.map(at).join(" ") }),
    );
  }
  return group;
}

/** The roles that a head holds, as a whole or at some positions; or the relations that it follows. */
function roleNames(head) {
  if (relations.length) {
    const followed = relations.filter(({ uniform, heads }) => heads[head] && isFollowed(heads[head], uniform));
    const names = followed.map(({ name }) => name);
    return { names, words: names.join(", ") };
  }
  const whole = roleOf(head);
  const ranges = pageData.positions[head]?.ranges ?? [];
  if (whole !== ROLE.mixed) return { names: [whole], words: whole };
  return {
    names: ranges.map(({ role }) => role),
    words: ranges.map(({ role, first, last }) => `${role} ${first}–${last}`).join(", "),
  };
}

/** As many letters as there is room for; that it is a token goes without saying first. */
function shortened(whole, wide) {
  const room = Math.floor((wide - PANEL.left - 50) / 6);
  const words = whole.length > room ? whole.replaceAll(" token", "") : whole;
  return words.length > room ? `${words.slice(0, Math.max(room - 1, 0))}…` : words;
}

function legend() {
  const style = getComputedStyle(document.documentElement);
  return told.map(({ name, at }) => ({ text: name, colour: style.getPropertyValue(`--line-${at % COLOURS}`).trim() }));
}

function table(heads) {
  const rows = [["head", "layer", "score", "step", "value", "low", "high", "even attention"]];
  for (const head of heads) {
    for (const { name, series } of told) {
      pageData.steps.forEach((step, index) => {
        const found = scoreAt(series, index, head);
        if (found) rows.push([headName(head), layerOf(head), name, step, ...found, series.null]);
      });
    }
  }
  return rows;
}
