// The residual stream: what each part writes, and what could be read from it on the way.
import { css, inkOn, weightColour, weightLegend } from "./colour.js";
import { dataTable, tableRow } from "./data_table.js";
import { barCell } from "./dot_product.js";
import { element, fixed, floats, interval, short, visible } from "./elements.js";

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
      "Every part reads the stream and adds to it. How much each writes, and what the unembedding would make of the stream if the model ended there (the logit lens).",
    ),
    element(
      "div",
      { class: "two" },
      parts("Mean norm of what each part adds", "norm", stream.norms, 2),
      stream.logits
        ? parts("What each part adds to the right token's logit, above the mean logit", "logit", stream.logits, 3)
        : element("p", {}, "The norms replace the stream, so what the parts add to the logits cannot be told apart."),
    ),
    depths(stream.depths),
    lens(stream.lens),
  );
}

function parts(title, unit, rows, digits) {
  const signed = rows.some(([, number]) => number < 0);
  const largest = Math.max(...rows.map(([, number]) => Math.abs(number)), 1e-12);
  const row = ([name, number]) => tableRow(name, [fixed(number, digits), barCell(number / largest, signed)]);
  return element("div", {}, element("h3", {}, title), dataTable(title, ["part", unit, ""], rows.map(row)));
}

function depths(rows) {
  const title = "The logit lens by depth";
  const columns = ["stream at", "accuracy", "95 % interval", "loss, nats", "norm of the stream"];
  const row = ([site, { accuracy, low, high, loss }, norm]) =>
    tableRow(site, [fixed(accuracy, 3), interval(low, high), fixed(loss, 3), fixed(norm, 2)]);
  return element("div", {}, element("h3", {}, title), dataTable(title, columns, rows.map(row)));
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
        `At ${places[depth]}, after token ${at} ${visible(tokens[at])}: likeliest is ${visible(likeliest[depth][at])} (${fixed(confidenceAt[depth * n + at], 3)}); ` +
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
  // The last place above: the stream flows upwards, as in the papers.
  const rows = [...places.keys()].reverse().map((depth) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, places[depth].replace("blocks.", "").replace("hook_", "")),
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
  );
}
