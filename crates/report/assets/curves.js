// Lines over steps or positions, with what they are to be read against: bands, levels, and what happened when.
import { drawnForWidth, element, fixed, interval, svgElement, toggle } from "./elements.js";
import { exports, standalone } from "./picture.js";

const HEIGHT = 250;
const PLOT = { left: 44, top: 12, right: 14, bottom: 34 };
const COLOURS = 8;
/** Lines that the box at the pointer has room for, the highest first. */
const MOST_TOLD = 10;
/** Points from which on a logarithmic axis is offered. */
const FEWEST_FOR_LOG = 6;
const STEPS = "step (updates)";

/**
 * `{name, x?: {name}, y: {name, low, high}, lines: [{name, points: [[step, value]], band?: [[step, low, high]],
 * colour?}], bands?: [{name, low, high}], levels?: [{name, value}], marks?: [{step, name}], log?: whether the steps
 * begin logarithmic, last?: the last step of the axis, command?}`.
 * Lines take the theme's colours in turn, or number `colour`; the second eight are dashed. A click on a name isolates
 * its line. A click in the plot chooses a step: `onStep` hears it. `cursor(step)` marks one, `show(plot)` changes what
 * is drawn.
 */
export function curves(plot, onStep = null) {
  const readout = element("p", { class: "readout", "aria-live": "polite" });
  const place = element("div", { class: "plot" });
  const box = element("div", { class: "told", hidden: true, "aria-hidden": "true" });
  const caption = element("figcaption", {}, plot.name);
  const view = { log: plot.log ?? false, fit: false, isolated: null };
  let steps = stepsOf(plot);
  let shownKey = null;
  let at = null;
  let scale = null;
  let cursorLine = null;
  let crosshair = null;
  let drawn = null;

  const draw = drawnForWidth(place, (width) => {
    scale = scales(visible(), steps, width, view);
    drawn = svgElement("svg", { width, height: HEIGHT, role: "img", "aria-label": plot.name });
    const upright = (name) =>
      svgElement("line", { class: name, y1: PLOT.top, y2: HEIGHT - PLOT.bottom, visibility: "hidden" });
    [cursorLine, crosshair] = [upright("cursor"), upright("crosshair")];
    drawn.append(
      ...axes(plot, scale, width),
      ...grounds(plot, scale, width),
      ...drawnLines(visible(), scale),
      ...marks(plot, scale),
      crosshair,
      cursorLine,
    );
    const nearest = (event) => {
      const x = event.clientX - drawn.getBoundingClientRect().left;
      return steps.reduce(
        (best, step) => (Math.abs(scale.x(step) - x) < Math.abs(scale.x(best) - x) ? step : best),
        steps[0] ?? null,
      );
    };
    drawn.addEventListener("pointermove", (event) => point(nearest(event), width));
    drawn.addEventListener("pointerleave", () => point(null, width));
    if (onStep) drawn.addEventListener("click", (event) => onStep(nearest(event)));
    place.replaceChildren(drawn, box);
    cursor(at);
  });

  /** The plot with the lines that are not hidden; each knows its place, which makes its colour. */
  function visible() {
    const numbered = plot.lines.map((line, index) => ({ ...line, index }));
    const { isolated } = view;
    return { ...plot, lines: numbered.filter(({ index }) => isolated === null || isolated.has(index)) };
  }

  function point(step, width) {
    box.hidden = step === null;
    if (step === null) {
      crosshair.setAttribute("visibility", "hidden");
      return tell(at);
    }
    const x = scale.x(step);
    crosshair.setAttribute("visibility", "visible");
    crosshair.setAttribute("x1", x);
    crosshair.setAttribute("x2", x);
    box.replaceChildren(element("b", {}, `${unitOf(plot)} ${step}`), ...toldLines(visible(), step));
    box.style.left = x < width / 2 ? `${x + 12}px` : "";
    box.style.right = x < width / 2 ? "" : `${width - x + 12}px`;
    tell(step);
  }

  function tell(step) {
    if (step === null) return;
    const value = ({ name, points }) => {
      const found = points.find(([other]) => other === step);
      return found ? `${name} ${fixed(found[1], 3)}` : null;
    };
    readout.textContent = `${unitOf(plot)} ${step}: ${visible().lines.map(value).filter(Boolean).join(", ")}`;
  }

  function cursor(step) {
    at = step;
    if (step === null || !scale) return;
    cursorLine.setAttribute("visibility", "visible");
    cursorLine.setAttribute("x1", scale.x(step));
    cursorLine.setAttribute("x2", scale.x(step));
    tell(step);
  }

  /** A line's name was clicked: it alone, or with those that are alone already, or all again. */
  function isolate(index) {
    const isolated = view.isolated ?? new Set();
    if (isolated.has(index)) isolated.delete(index);
    else isolated.add(index);
    view.isolated = isolated.size && isolated.size < plot.lines.length ? isolated : null;
    again();
  }

  function again() {
    const nextKey = key(plot, view.isolated, isolate);
    shownKey?.replaceWith(nextKey);
    shownKey = nextKey;
    draw();
  }

  function show(next) {
    if (next.lines.length !== plot.lines.length) view.isolated = null;
    plot = next;
    caption.textContent = plot.name;
    steps = stepsOf(plot);
    again();
  }

  const way = (text, name) =>
    toggle(text, view[name], (on) => {
      view[name] = on;
      draw();
    });
  const overSteps = !plot.x && (steps.length >= FEWEST_FOR_LOG || plot.log);
  again();
  return {
    node: element(
      "figure",
      { class: "curves" },
      caption,
      place,
      shownKey,
      element(
        "div",
        { class: "under" },
        overSteps ? way("logarithmic steps", "log") : null,
        way("height that fits", "fit"),
        exports({
          name: () => plot.name,
          svg: () => standalone(drawn, plot.name, legendOf(visible())),
          csv: () => tableOf(plot),
          command: plot.command,
        }),
      ),
      readout,
    ),
    cursor,
    show,
  };
}

/** The steps of all lines, in order. */
function stepsOf({ lines }) {
  return [...new Set(lines.flatMap(({ points }) => points.map(([step]) => step)))].sort((a, b) => a - b);
}

const unitOf = ({ x }) => (x ? x.name : "step");

function lineClass(line) {
  const number = line.colour ?? line.index;
  return `line line-${number % COLOURS}${number >= COLOURS ? " second" : ""}`;
}

/** Where steps and values stand. Logarithmic, step 0 stands where half of the first step would. */
function scales({ y, lines, last: end }, steps, width, { log, fit }) {
  const first = steps[0] ?? 0;
  const last = Math.max(end ?? steps.at(-1) ?? 1, first + 1);
  const across = width - PLOT.left - PLOT.right;
  const up = HEIGHT - PLOT.top - PLOT.bottom;
  const smallest = steps.find((step) => step > 0) ?? 1;
  const place = log ? (step) => Math.log(Math.max(step, smallest / 2)) : (step) => step;
  const span = place(last) - place(first) || 1;
  const { low, high } = fit ? fitted(lines, y) : y;
  const within = (value) => Math.min(Math.max(value, low), high);
  return {
    first,
    last,
    low,
    high,
    log,
    smallest,
    x: (step) => PLOT.left + (across * (place(step) - place(first))) / span,
    y: (value) => PLOT.top + up * (1 - (within(value) - low) / (high - low || 1)),
  };
}

/** From the lowest to the highest of all lines and their bands, with a little room. */
function fitted(lines, { low, high }) {
  const values = lines.flatMap(({ points, band = [] }) => [
    ...points.map(([, value]) => value),
    ...band.flatMap(([, from, to]) => [from, to]),
  ]);
  if (!values.length) return { low, high };
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const room = 0.06 * (most - least) || 0.01;
  return { low: least - room, high: most + room };
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

/** Steps to name: round ones, and the last. */
function stepTicks({ first, last, log, smallest, x }, width) {
  let named = ticks(first, last, width < 500 ? 4 : 8);
  if (log) {
    const powers = [1, 2, 5].flatMap((factor) =>
      Array.from({ length: 12 }, (_, power) => factor * 10 ** power),
    );
    named = [first, ...powers.filter((step) => step >= smallest && step < last)].sort((a, b) => a - b);
  }
  const apart = (a, b) => Math.abs(x(a) - x(b)) >= 34;
  const kept = [];
  for (const step of named.filter(Number.isInteger)) if (apart(step, last) && kept.every((other) => apart(step, other))) kept.push(step);
  return [...kept, last];
}

function axes({ x, y }, scale, width) {
  const text = (attributes, content) => svgElement("text", { class: "tick", ...attributes }, content);
  const level = (value) => [
    svgElement("line", {
      class: "rule",
      x1: PLOT.left,
      x2: width - PLOT.right,
      y1: scale.y(value),
      y2: scale.y(value),
    }),
    text({ x: PLOT.left - 6, y: scale.y(value) + 4, "text-anchor": "end" }, String(value).replace("-", "−")),
  ];
  const step = (value) =>
    text({ x: scale.x(value), y: HEIGHT - PLOT.bottom + 16, "text-anchor": "middle" }, String(value));
  const middle = (PLOT.left + width - PLOT.right) / 2;
  const along = x ? x.name : STEPS + (scale.log ? ", logarithmic" : "");
  return [
    ...ticks(scale.low, scale.high, 5).flatMap(level),
    ...stepTicks(scale, width).map(step),
    text({ x: middle, y: HEIGHT - 3, "text-anchor": "middle" }, `across: ${along} · up: ${y.name}`),
  ];
}

/** What lines are to be read against. */
function grounds({ bands = [], levels = [] }, scale, width) {
  const across = { x: PLOT.left, width: Math.max(width - PLOT.left - PLOT.right, 0) };
  const isIn = (value) => value >= scale.low && value <= scale.high;
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
  const touches = ({ low, high }) => low <= scale.high && high >= scale.low;
  return [...bands.filter(touches).map(band), ...levels.filter(({ value }) => isIn(value)).map(level)];
}

function drawnLines({ lines }, scale) {
  const at = ([step, value]) => `${scale.x(step).toFixed(1)},${scale.y(value).toFixed(1)}`;
  return lines.flatMap((line) => {
    const up = (line.band ?? []).map(([step, , high]) => at([step, high]));
    const down = (line.band ?? []).map(([step, low]) => at([step, low])).reverse();
    const [only] = line.points;
    return [
      svgElement("polygon", { class: `band ${lineClass(line)}`, points: [...up, ...down].join(" ") }),
      line.points.length === 1
        ? svgElement("circle", { class: `dot ${lineClass(line)}`, cx: scale.x(only[0]), cy: scale.y(only[1]), r: 3 })
        : svgElement("polyline", { class: lineClass(line), points: line.points.map(at).join(" ") }),
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

/** The values at a step, the highest first, each with its interval. */
function toldLines({ lines }, step) {
  const found = lines
    .map((line) => ({
      line,
      value: line.points.find(([other]) => other === step)?.[1],
      ends: line.band?.find(([other]) => other === step),
    }))
    .filter(({ value }) => value !== undefined)
    .sort((a, b) => b.value - a.value);
  const told = found.slice(0, MOST_TOLD).map(({ line, value, ends }) =>
    element(
      "div",
      {},
      element("span", { class: `swatch ${lineClass(line)}` }),
      `${line.name} ${fixed(value, 3)}`,
      ends ? element("small", {}, ` (${interval(ends[1], ends[2])})`) : null,
    ),
  );
  const more = found.length - told.length;
  return more > 0 ? [...told, element("small", {}, `and ${more} lower`)] : told;
}

function key({ lines, bands = [], levels = [], marks: happened = [] }, isolated, isolate) {
  const swatch = (className) => element("span", { class: `swatch ${className}`, "aria-hidden": "true" });
  const item = (className, text) => element("li", {}, swatch(className), text);
  const line = (drawn, index) => {
    const isOn = isolated === null || isolated.has(index);
    const title = `Show ${drawn.name} alone; a click on others adds them`;
    const attributes = { type: "button", class: "plain", "aria-pressed": String(isOn), title, onclick: () => isolate(index) };
    return element("li", {}, element("button", attributes, swatch(lineClass({ ...drawn, index })), drawn.name));
  };
  return element(
    "ul",
    { class: "key" },
    lines.map(line),
    levels.map(({ name, value }) => item("level", `${name} ${fixed(value, 3)}`)),
    bands.map(({ name, low, high }) => item("null-band", `${name} ${fixed(low, 3)} to ${fixed(high, 3)}`)),
    happened.map(({ step, name }) => item("event", `step ${step}: ${name}`)),
  );
}

/** What the lines of a saved picture are. */
function legendOf({ lines, levels = [] }) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const drawn = lines.map((line) => {
    const number = line.colour ?? line.index;
    return { text: line.name, colour: colour(`--line-${number % COLOURS}`), dash: number >= COLOURS ? "5 3" : null };
  });
  const level = ({ name, value }) => ({ text: `${name} ${fixed(value, 3)}`, colour: colour("--soft"), dash: "6 4" });
  return [...drawn, ...levels.map(level)];
}

/** The numbers of a plot: a row for each line and step. */
function tableOf(plot) {
  const rows = [["line", unitOf(plot), "value", "low", "high"]];
  for (const { name, points, band = [] } of plot.lines) {
    for (const [step, value] of points) {
      const ends = band.find(([other]) => other === step);
      rows.push([name, step, value, ends?.[1], ends?.[2]]);
    }
  }
  return rows;
}
