// The stages of one head's attention, each with the numbers it takes, those it gives, and how a number was made.
import { bar, dotProduct } from "./dot_product.js";
import { element, fixed, visible } from "./elements.js";
import { lateTable, transposed } from "./matrix.js";

/**
 * `source` holds a head's numbers on one sequence, each matrix a `table`:
 * `{tokens, directions?: names of the stream's columns, layer, says?: of the stream, stream, streamParts?: [{name, table}], norm?: {kind: "layer" | "rms", gain, bias?, epsilon, output},
 * q, k, v, weights: {q, k, v, o}, biases: {q?, k?, v?, o?}, rotated?: {q, k}, scale, scaleName, scores, pattern, z,
 * result?, added?, after?, attends(query, key), masked?: false where there is no mask, replacesStream}`.
 * In `scores` a masked pair is −∞. `result` is what this head writes, `added` what all heads of the layer write.
 *
 * A stage is `{id, title, says, parts, explain(row, column)}`: parts are signs, or matrices
 * `{name, table, tokens: "rows" | "columns" | "both" | "none", directions?: "rows" | "columns", weights?, shows?, made?: the stage that made it,
 * turned?: true if it stands there with rows for columns, role: "left" | "right" | "same" | "result"}`.
 */
export function walkStages(source) {
  const { tokens, directions, weights, biases, scale, attends } = source;
  const named = directions?.map((direction, at) => `${at} ${direction}`);
  const n = tokens.length;
  const read = source.norm ? { name: "X̂", table: source.norm.output, made: "norm" } : { name: "X", table: source.stream, made: "stream" };
  const [q, k] = source.rotated ? [source.rotated.q, source.rotated.k] : [source.q, source.k];
  const [queryName, keyName] = source.rotated ? ["Q′", "K′"] : ["Q", "K"];
  const [madeQuery, madeKey] = source.rotated ? ["rotate", "rotate"] : ["q", "k"];
  const turnedKeys = transposed(k);
  const raw = lateTable(n, n, () => timesOf(q, turnedKeys));
  const scaled = lateTable(n, n, () => raw.values.map((value) => value * scale));

  const projected = (id, name, says, weight, bias, output) =>
    product({
      id, title: name, says,
      left: { ...read, tokens: "rows", directions: "columns" },
      right: { name: `W_${name}`, table: weight, tokens: "none", directions: "rows" },
      result: { name, table: output, tokens: "rows" },
      added: (_, column) => (bias ? [[`b_${name}[${column}]`, bias[column]]] : []),
      names: named,
    });

  return [
    streamStage(source),
    source.norm && normStage(source),
    projected("q", "Q", "What each token looks for: its row of the stream times the parameters W_Q.", weights.q, biases.q, source.q),
    projected("k", "K", "What each token offers to be found by: its row times W_K.", weights.k, biases.k, source.k),
    projected("v", "V", "What each token hands over when it is looked at: its row times W_V.", weights.v, biases.v, source.v),
    source.rotated && rotateStage(source),
    product({
      id: "raw", title: "Q·Kᵀ", says: "Every query against every key: a large dot product says that they match.",
      left: { name: queryName, table: q, tokens: "rows", made: madeQuery },
      right: { name: `${keyName}ᵀ`, table: turnedKeys, tokens: "columns", made: madeKey, turned: true },
      result: { name: "Q·Kᵀ", table: raw, tokens: "both" },
    }),
    {
      id: "scale", title: "÷ √d_k",
      says: `A dot product of ${q.columns} terms grows with their number; the factor ${source.scaleName} takes that back, so that softmax does not saturate.`,
      parts: [
        { name: "Q·Kᵀ", table: raw, tokens: "both", made: "raw", role: "same" }, "→",
        { name: "S", table: scaled, tokens: "both", role: "result" },
      ],
      explain: (row, column) =>
        lines(`S[${row}, ${column}] = Q·Kᵀ[${row}, ${column}] × ${source.scaleName}`, `= ${fixed(raw.at(row, column), 4)} × ${fixed(scale, 4)} = ${fixed(scaled.at(row, column), 4)}`),
    },
    source.masked !== false && maskStage(source, scaled),
    softmaxStage(source),
    product({
      id: "blend", title: "A·V", says: "Each query takes from every token it looks at that token's value, as much as the weight says.",
      left: { name: "A", table: source.pattern, tokens: "both", weights: true, shows: attends, made: "softmax" },
      right: { name: "V", table: source.v, tokens: "rows", made: "v" },
      result: { name: "Z", table: source.z, tokens: "rows" },
      names: tokens.map((token, at) => `${at} ${visible(token)}`),
    }),
    source.result && product({
      id: "write", title: "Z·W_O", says: "The blend, turned by W_O into the directions of the stream: what this head writes.",
      left: { name: "Z", table: source.z, tokens: "rows", made: "blend" },
      right: { name: "W_O", table: weights.o, tokens: "none", directions: "columns" },
      result: { name: "Z·W_O", table: source.result, tokens: "rows", directions: "columns" },
      column: (at) => directionOf(source, at),
    }),
    source.added && addStage(source),
  ].filter(Boolean);
}

/** A matrix product in 32-bit numbers. */
function timesOf(left, right) {
  const out = new Float32Array(left.rows * right.columns);
  for (let row = 0; row < left.rows; row++) {
    for (let column = 0; column < right.columns; column++) {
      let sum = 0;
      for (let i = 0; i < left.columns; i++) sum += left.values[row * left.columns + i] * right.values[i * right.columns + column];
      out[row * right.columns + column] = sum;
    }
  }
  return out;
}

/** The name of a column of the stream, or its number. */
function directionOf({ directions }, column) {
  return directions ? directions[column] : String(column);
}

function product({ id, title, says, left, right, result, added = () => [], names, column: named = String }) {
  return {
    id, title, says,
    parts: [{ ...left, role: "left" }, "·", { ...right, role: "right" }, "=", { ...result, role: "result" }],
    explain: (row, column) =>
      dotProduct({
        cell: `${result.name}[${row}, ${named(column)}]`,
        leftName: `${left.name}[${row}, i]`,
        rightName: `${right.name}[i, ${named(column)}]`,
        left: left.table.row(row),
        right: right.table.column(column),
        added: added(row, column),
        names,
        value: result.table.at(row, column),
      }),
  };
}

function lines(...texts) {
  return element("div", { class: "dot-product" }, texts.map((text) => element("p", { class: "equation" }, text)));
}

/** Terms and their sum. */
function sumOf(cell, terms, value) {
  const largest = Math.max(...terms.map(([, number]) => Math.abs(number)), 1e-12);
  const row = ([name, number]) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, fixed(number, 4)), element("td", { class: "bar" }, bar(number / largest)));
  return element(
    "div",
    { class: "dot-product" },
    element("p", { class: "equation" }, `${cell} = `, element("output", {}, fixed(value, 4))),
    element("table", {}, element("tbody", {}, terms.map(row))),
  );
}

function streamStage(source) {
  const { stream, streamParts, layer, tokens, says, replacesStream } = source;
  const origin = replacesStream && layer > 0 ? "as the last norm of the layer before left it" : "the sum of all that was written before";
  return {
    id: "stream", title: "X",
    says: says ?? `The residual stream as layer ${layer} finds it: one row for each token, ${origin}.`,
    parts: [{ name: "X", table: stream, tokens: "rows", directions: "columns", role: "result" }],
    explain: (row, column) => {
      const cell = `X[${row}, ${directionOf(source, column)}], token ${visible(tokens[row])}`;
      if (!streamParts) return lines(`${cell} = ${fixed(stream.at(row, column), 4)}`);
      return sumOf(cell, streamParts.map(({ name, table: part }) => [name, part.at(row, column)]), stream.at(row, column));
    },
  };
}

function normStage({ stream, norm }) {
  const isLayer = norm.kind === "layer";
  return {
    id: "norm", title: "norm",
    says: isLayer
      ? "Layer norm: each row less its mean, divided by its deviation, then gain and bias of each column."
      : "RMS norm: each row divided by its root mean square, then the gain of each column.",
    parts: [{ name: "X", table: stream, tokens: "rows", made: "stream", role: "same" }, "→", { name: "X̂", table: norm.output, tokens: "rows", role: "result" }],
    explain: (row, column) => {
      const numbers = stream.row(row);
      const meanOf = (of) => numbers.reduce((sum, x) => sum + of(x), 0) / numbers.length;
      const mean = isLayer ? meanOf((x) => x) : 0;
      const divisor = Math.sqrt(meanOf((x) => (x - mean) ** 2) + norm.epsilon);
      const bias = norm.bias ? ` + ${fixed(norm.bias[column], 4)}` : "";
      return lines(
        isLayer ? `X̂[${row}, ${column}] = (x − mean) / √(variance + ε) · gain + bias` : `X̂[${row}, ${column}] = x / √(mean of squares + ε) · gain`,
        `= (${fixed(stream.at(row, column), 4)}${isLayer ? ` − ${fixed(mean, 4)}` : ""}) / ${fixed(divisor, 4)} · ${fixed(norm.gain[column], 4)}${bias} = ${fixed(norm.output.at(row, column), 4)}`,
      );
    },
  };
}

function rotateStage({ q, k, rotated }) {
  return {
    id: "rotate", title: "rotate",
    says: "Rotary positions: pairs of numbers in each query and key turn by an angle that grows with the position.",
    parts: [
      { name: "Q", table: q, tokens: "rows", made: "q", role: "same" }, "→", { name: "Q′", table: rotated.q, tokens: "rows", role: "result" },
      { name: "K", table: k, tokens: "rows", made: "k", role: "same" }, "→", { name: "K′", table: rotated.k, tokens: "rows", role: "same" },
    ],
    explain: (row, column) => {
      const half = q.columns / 2;
      const other = (column + half) % q.columns;
      return lines(
        `Q[${row}] at ${column} and ${other}: ${fixed(q.at(row, column), 4)}, ${fixed(q.at(row, other), 4)}`,
        `turned by position ${row}: Q′[${row}, ${column}] = ${fixed(rotated.q.at(row, column), 4)}`,
      );
    },
  };
}

function maskStage({ scores, attends }, scaled) {
  return {
    id: "mask", title: "mask",
    says: "A token sees itself and those before it. What it may not see is taken out before softmax and gets weight 0.",
    parts: [
      { name: "S", table: scaled, tokens: "both", made: "scale", role: "same" }, "→",
      { name: "S, masked", table: scores, tokens: "both", shows: attends, role: "result" },
    ],
    explain: (row, column) => {
      if (!attends(row, column)) return lines(`query ${row} may not attend to key ${column}: out`);
      const [before, after] = [scaled.at(row, column), scores.at(row, column)];
      const bias = after - before;
      // Sums in another order differ in the last digits; a bias by distance is far larger.
      if (Math.abs(bias) < 1e-3) return lines(`query ${row} may attend to key ${column}: ${fixed(after, 4)}`);
      return sumOf(`S[${row}, ${column}]`, [["score", before], ["bias by distance", bias]], after);
    },
  };
}

function softmaxStage({ scores, pattern, attends, tokens, masked }) {
  const [name, made] = masked === false ? ["S", "scale"] : ["S, masked", "mask"];
  return {
    id: "softmax", title: "softmax",
    says: "Each row becomes weights: positive, together 1.00, the largest score far ahead.",
    parts: [
      { name, table: scores, tokens: "both", shows: attends, made, role: "same" }, "→",
      { name: "A", table: pattern, tokens: "both", weights: true, shows: attends, role: "result" },
    ],
    explain: (row, column) => {
      const seen = [...tokens.keys()].filter((key) => attends(row, key));
      const largest = Math.max(...seen.map((key) => scores.at(row, key)));
      const powers = seen.map((key) => Math.exp(scores.at(row, key) - largest));
      const sum = powers.reduce((total, power) => total + power, 0);
      const weights = seen.reduce((total, key) => total + pattern.at(row, key), 0);
      const line = (key, i) =>
        element(
          "tr",
          { class: key === column ? "here" : null },
          element("th", { scope: "row" }, `${key} ${visible(tokens[key])}`),
          ...[scores.at(row, key), powers[i], pattern.at(row, key)].map((number) => element("td", {}, fixed(number, 4))),
          element("td", { class: "bar" }, bar(pattern.at(row, key), false)),
        );
      const head = ["key", "score", "exp(score − largest)", "weight", ""].map((text) => element("th", { scope: "col" }, text));
      return element(
        "div",
        { class: "dot-product" },
        element("p", { class: "equation" }, `A[${row}, ${column}] = exp(score − largest) / ${fixed(sum, 4)} = `, element("output", {}, attends(row, column) ? fixed(pattern.at(row, column), 4) : "0, masked")),
        element("p", {}, `The row's weights sum to ${fixed(weights, 2)}.`),
        element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `The weights of query ${row}` },
          element("table", {}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, seen.map(line)))),
      );
    },
  };
}

function addStage(source) {
  const { stream, result, added, after, layer, replacesStream, biases } = source;
  const wide = { tokens: "rows", directions: "columns" };
  return {
    id: "add", title: "x ← x + f(x)",
    says: replacesStream
      ? `All heads of layer ${layer} add what they write to the stream; a norm then replaces it.`
      : `All heads of layer ${layer} add what they write to the stream. Nothing is overwritten: later layers find both.`,
    parts: [
      { name: "X", table: stream, ...wide, made: "stream", role: "same" }, "+",
      { name: "all heads", table: added, ...wide, role: "same" }, "=",
      { name: "X + f(X)", table: after, ...wide, role: "result" },
    ],
    explain: (row, column) => {
      const own = result.at(row, column);
      const bias = biases.o ? biases.o[column] : 0;
      const terms = [["the stream as it was", stream.at(row, column)], ["this head", own], ["the layer's other heads", added.at(row, column) - own - bias]];
      if (biases.o) terms.push([`b_O[${column}]`, bias]);
      return sumOf(`[${row}, ${directionOf(source, column)}]`, terms, after.at(row, column));
    },
  };
}
