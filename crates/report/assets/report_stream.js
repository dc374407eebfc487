// The residual stream: what each part writes, and what could be read from it on the way.
import { css, inkOn, weightColour, weightLegend } from "./colour.js";
import { dataTable, tableRow } from "./data_table.js";
import { barCell } from "./dot_product.js";
import { element, fixed, floats, interval, short, visible } from "./elements.js";
import { term } from "./glossary.js";
import { command, exports } from "./picture.js";

export function streamSection() {
  const { stream } = pageData;
  if (!stream) return null;
  return element(
    "section",
    { id: "stream" },
    element("h2", {}, "The residual stream"),
    element(
      "p",
      {},
      "Every part reads the ",
      term("stream"),
      " and adds to it. How much each writes, and what the ",
      term("unembedding"),
      " would make of the stream if the model ended there (the ",
      term("logit lens"),
      ").",
    ),
    element(
      "div",
      { class: "two" },
      parts("Mean norm of what each part adds", "norm", stream.norms, 2, null),
      stream.logits
        ? parts("What each part adds to the right token's logit, above the mean logit", "logit", stream.logits, 3, command(pageData.run.name, "lens"))
        : element("p", {}, "The norms replace the stream, so what the parts add to the logits cannot be told apart."),
    ),
    depths(stream.depths),
    lens(stream.lens),
  );
}

function parts(title, unit, rows, digits, made) {
  const signed = rows.some(([, number]) => number < 0);
  const largest = Math.max(...rows.map(([, number]) => Math.abs(number)), 1e-12);
  const row = ([name, number]) => tableRow(name, [fixed(number, digits), barCell(number / largest, signed)]);
  const figure = exports({ name: title, csv: () => [["part", unit], ...rows], command: made });
  return element("div", {}, element("h3", {}, title), dataTable(title, ["part", unit, ""], rows.map(row)), figure);
}

/** `blocks.0.hook_resid_post` is the stream after layer 0. */
function placeInWords(site) {
  const [, layer, place] = /^blocks\.(\d+)\.hook_resid_(pre|mid|post)$/.exec(site) ?? [];
  if (layer === undefined) return site;
  const words = { pre: "before layer", mid: "after attention of layer", post: "after layer" };
  return `${words[place]} ${layer}`;
}

function depths(rows) {
  const title = "The logit lens by depth";
  const columns = ["stream at", "accuracy", "95 % interval", "loss, nats", "norm of the stream"];
  const row = ([site, { accuracy, low, high, loss }, norm]) =>
    tableRow(element("span", { title: site }, placeInWords(site)), [fixed(accuracy, 3), interval(low, high), fixed(loss, 3), fixed(norm, 2)]);
  const figure = exports({
    name: "logit lens by depth",
    csv: () => [["stream at", "accuracy", "low", "high", "loss, nats", "norm"], ...rows.map(([site, left, norm]) => [site, left.accuracy, left.low, left.high, left.loss, norm])],
    command: command(pageData.run.name, "lens"),
  });
  return element("div", {}, element("h3", {}, title), dataTable(title, columns, rows.map(row)), figure);
}

/** A row a depth, a column a position: the likeliest token, shaded by the probability of the right one. */
function lens({ tokens, targets, scored, depths: places, right, likeliest, confidence }) {
  const [rightAt, confidenceAt] = [floats(right), floats(confidence)];
  const n = tokens.length;
  const readout = element(
    "p",
    { class: "readout", "aria-live": "polite" },
    "Point at a cell, or move to it with the tab key.",
  );
  const cell = (depth, at) => {
    const share = rightAt[depth * n + at];
    const colour = weightColour(share);
    const tell = () => {
      readout.textContent =
        `${placeInWords(places[depth])}, at token ${at} ${visible(tokens[at])}: likeliest is ${visible(likeliest[depth][at])} (${fixed(confidenceAt[depth * n + at], 3)}); ` +
        `what comes, ${visible(targets[at])}, has probability ${fixed(share, 3)}${scored[at] ? "" : ", and is not scored"}.`;
    };
    return element(
      "td",
      {
        class: scored[at] ? "lens scored" : "lens",
        tabindex: depth === places.length - 1 ? "0" : "-1",
        style: `background: ${css(colour)}; color: ${inkOn(colour)}`,
        onpointerenter: tell,
        onfocus: tell,
      },
      short(likeliest[depth][at], 6),
    );
  };
  const cellRows = () => [
    ["stream at", "position", "token", "comes next", "is scored", "probability of what comes", "likeliest", "its probability"],
    ...places.flatMap((place, depth) =>
      tokens.map((token, at) => {
        const cell = depth * n + at;
        return [place, at, token, targets[at], scored[at], rightAt[cell], likeliest[depth][at], confidenceAt[cell]];
      }),
    ),
  ];
  // The last place above: the stream flows upwards, as in the papers.
  const rows = [...places.keys()].reverse().map((depth) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", title: places[depth] }, placeInWords(places[depth])),
      tokens.map((_, at) => cell(depth, at)),
    ),
  );
  const header = (name, texts) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, name),
      texts.map((text) => element("th", { scope: "col" }, short(text, 6))),
    );
  return element(
    "div",
    {},
    element("h3", {}, "The logit lens by position and depth"),
    element(
      "p",
      {},
      "In each cell the likeliest next token if the model ended there, shaded by the probability of the token that really comes. Targets that the task scores are underlined.",
    ),
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "The logit lens by position and depth" },
      element(
        "table",
        { class: "lens" },
        element("thead", {}, header("comes next", targets)),
        element("tbody", {}, rows),
        element("tfoot", {}, header("token", tokens)),
      ),
    ),
    weightLegend("probability of what comes", false),
    readout,
    exports({ name: "logit lens by position and depth", csv: () => cellRows() }),
  );
}
