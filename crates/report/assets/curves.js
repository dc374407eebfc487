// Lines over steps, with what they are to be read against: bands, levels, and what happened when.
import { drawnForWidth, element, fixed, svgElement } from "./elements.js";

const HEIGHT = 230;
const PLOT = { left: 44, top: 12, right: 12, bottom: 34 };
const COLOURS = 8;

/**
 * `{name, y: {name, low, high}, lines: [{name, points: [[step, value]], band?: [[step, low, high]], colour?}],
 * bands?: [{name, low, high}], levels?: [{name, value}], marks?: [{step, name}], last?: the last step of the axis}`.
 * Lines take the theme's colours in turn, or number `colour`. A click chooses a step: `onStep` hears it. `cursor(step)`
 * marks one, `show(plot)` changes what is drawn.
 */
export function curves(plot, onStep = null) {
  const readout = element("p", { class: "readout", "aria-live": "polite" });
  const place = element("div", { class: "plot" });
  let steps = stepsOf(plot);
  let shownKey = key(plot);
  let at = null;
  let scale = null;
  let cursorLine = null;

  const draw = drawnForWidth(place, (width) => {
    scale = scales(plot, steps, width);
    const svg = svgElement("svg", { width, height: HEIGHT, role: "img", "aria-label": plot.name });
    cursorLine = svgElement("line", { class: "cursor", y1: PLOT.top, y2: HEIGHT - PLOT.bottom, visibility: "hidden" });
    svg.append(
      ...axes(plot, scale, width),
      ...grounds(plot, scale, width),
      ...drawnLines(plot, scale),
      ...marks(plot, scale),
      cursorLine,
    );
    const nearest = (event) => {
      const x = event.clientX - svg.getBoundingClientRect().left;
      return steps.reduce(
        (best, step) => (Math.abs(scale.x(step) - x) < Math.abs(scale.x(best) - x) ? step : best),
        steps[0] ?? null,
      );
    };
    svg.addEventListener("pointermove", (event) => tell(nearest(event)));
    svg.addEventListener("pointerleave", () => tell(at));
    if (onStep) svg.addEventListener("click", (event) => onStep(nearest(event)));
    place.replaceChildren(svg);
    cursor(at);
  });

  function tell(step) {
    if (step === null) return;
    const value = ({ name, points }) => {
      const found = points.find(([other]) => other === step);
      return found ? `${name} ${fixed(found[1], 3)}` : null;
    };
    readout.textContent = `step ${step}: ${plot.lines.map(value).filter(Boolean).join(", ")}`;
  }

  function cursor(step) {
    at = step;
    if (step === null || !scale) return;
    cursorLine.setAttribute("visibility", "visible");
    cursorLine.setAttribute("x1", scale.x(step));
    cursorLine.setAttribute("x2", scale.x(step));
    tell(step);
  }

  function show(next) {
    plot = next;
    steps = stepsOf(plot);
    const nextKey = key(plot);
    shownKey.replaceWith(nextKey);
    shownKey = nextKey;
    draw();
  }

  return {
    node: element("figure", { class: "curves" }, element("figcaption", {}, plot.name), place, shownKey, readout),
    cursor,
    show,
  };
}

/** The steps of all lines, in order. */
function stepsOf({ lines }) {
  return [...new Set(lines.flatMap(({ points }) => points.map(([step]) => step)))].sort((a, b) => a - b);
}

const lineClass = (line, index) => `line line-${(line.colour ?? index) % COLOURS}`;

function scales({ y, last: end }, steps, width) {
  const [first, last] = [steps[0] ?? 0, end ?? steps.at(-1) ?? 1];
  const across = width - PLOT.left - PLOT.right;
  const up = HEIGHT - PLOT.top - PLOT.bottom;
  return {
    first,
    last,
    x: (step) => PLOT.left + (across * (step - first)) / Math.max(last - first, 1),
    y: (value) => PLOT.top + up * (1 - (Math.min(Math.max(value, y.low), y.high) - y.low) / (y.high - y.low || 1)),
  };
}

/** About `count` round numbers between two numbers. */
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) =>
    Number(((first + i) * step).toFixed(digits)),
  );
}

function axes({ y }, scale, width) {
  const text = (attributes, content) => svgElement("text", { class: "tick", ...attributes }, content);
  const level = (value) => [
    svgElement("line", {
      class: "rule",
      x1: PLOT.left,
      x2: width - PLOT.right,
      y1: scale.y(value),
      y2: scale.y(value),
    }),
    text({ x: PLOT.left - 6, y: scale.y(value) + 4, "text-anchor": "end" }, String(value)),
  ];
  const step = (value) =>
    text({ x: scale.x(value), y: HEIGHT - PLOT.bottom + 16, "text-anchor": "middle" }, String(value));
  const middle = (PLOT.left + width - PLOT.right) / 2;
  return [
    ...ticks(y.low, y.high, 5).flatMap(level),
    ...ticks(scale.first, scale.last, width < 500 ? 4 : 8).map(step),
    text({ x: middle, y: HEIGHT - 3, "text-anchor": "middle" }, `step (updates) · ${y.name}`),
  ];
}

/** What lines are to be read against. */
function grounds({ bands = [], levels = [] }, scale, width) {
  const across = { x: PLOT.left, width: Math.max(width - PLOT.left - PLOT.right, 0) };
  const band = ({ low, high }) =>
    svgElement("rect", {
      class: "null-band",
      ...across,
      y: scale.y(high),
      height: Math.max(scale.y(low) - scale.y(high), 1),
    });
  const level = ({ value }) =>
    svgElement("line", {
      class: "level",
      x1: across.x,
      x2: across.x + across.width,
      y1: scale.y(value),
      y2: scale.y(value),
    });
  return [...bands.map(band), ...levels.map(level)];
}

function drawnLines({ lines }, scale) {
  const at = ([step, value]) => `${scale.x(step).toFixed(1)},${scale.y(value).toFixed(1)}`;
  return lines.flatMap((line, index) => {
    const up = (line.band ?? []).map(([step, , high]) => at([step, high]));
    const down = (line.band ?? []).map(([step, low]) => at([step, low])).reverse();
    return [
      svgElement("polygon", { class: `band ${lineClass(line, index)}`, points: [...up, ...down].join(" ") }),
      svgElement("polyline", { class: lineClass(line, index), points: line.points.map(at).join(" ") }),
    ];
  });
}

function marks({ marks: happened = [] }, scale) {
  return happened.flatMap(({ step, name }) => {
    const x = scale.x(step);
    return [
      svgElement(
        "line",
        { class: "event", x1: x, x2: x, y1: PLOT.top, y2: HEIGHT - PLOT.bottom },
        svgElement("title", {}, name),
      ),
      svgElement("path", { class: "event", d: `M${x - 4} ${PLOT.top - 8} h8 l-4 8 z` }, svgElement("title", {}, name)),
    ];
  });
}

function key({ lines, bands = [], levels = [], marks: happened = [] }) {
  const item = (className, text) =>
    element("li", {}, element("span", { class: `swatch ${className}`, "aria-hidden": "true" }), text);
  return element(
    "ul",
    { class: "key" },
    lines.map((line, index) => item(lineClass(line, index), line.name)),
    levels.map(({ name, value }) => item("level", `${name} ${fixed(value, 3)}`)),
    bands.map(({ name, low, high }) => item("null-band", `${name} ${fixed(low, 3)} to ${fixed(high, 3)}`)),
    happened.map(({ step, name }) => item("event", `step ${step}: ${name}`)),
  );
}
