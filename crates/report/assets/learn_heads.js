// Several heads for the price of one, and what attention costs in memory.
import { element, fixed } from "./elements.js";
import { bars, lesson, says, slider } from "./learn_controls.js";
import { matrix, table } from "./matrix.js";

const thousands = (number) => number.toLocaleString("en");

function costs({ costs: rows }) {
  const head = ["heads", "d_head", "parameters", "multiplications", "patterns"].map((text) => element("th", { scope: "col" }, text));
  const row = ({ n_heads: heads, d_head: width, parameters, multiplications }) =>
    element("tr", {}, ...[heads, width, parameters, multiplications, heads].map((number) => element("td", {}, thousands(number))));
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, rows.map(row))));
}

/** What `saw` takes from its neighbours, by one head and by two. */
function readings(sentences) {
  const names = sentences.map(({ tokens }) => `${tokens[0]}…${tokens.at(-1)}`);
  const drawn = (name, outputs, columnLabels) =>
    matrix({ name, table: table(outputs.length, outputs[0].length, outputs.flat()), rowLabels: names, columnLabels, weights: true }).node;
  return element(
    "div",
    { class: "two" },
    drawn("one head", sentences.map((sentence) => sentence.one_head), ["cat", "dog"]),
    drawn("two heads", sentences.map((sentence) => sentence.two_heads), ["cat", "dog", "cat", "dog"]),
  );
}

/** h heads against one. */
export function headsLesson({ heads }) {
  return lesson(
    "heads",
    "Several heads for the price of one",
    says(`A layer that splits d_model = ${heads.d_model} among its heads has as many parameters and needs as many multiplications (here for ${heads.tokens} tokens) as one head of full width. What grows is the number of patterns: each head looks in its own way.`),
    costs(heads),
    says("One head gives one blend. In the table below the query ", element("code", {}, "saw"), " has to know who stands before it and who after it. A head with half its weight on each hands over the same for both sentences. Two heads, one looking back and one ahead, write into directions of their own and keep the two apart. A single head can give unequal weights; but what it hands over is still one sum."),
    readings(heads.sentences),
  );
}

/** Memory by length. */
export function memoryLesson({ memory }) {
  const figure = element("div", { "aria-live": "polite" });
  const names = ["the n×n weights alone", "PyTorch, measured", "Headlight, measured"];
  const show = (at) => {
    const { weights, pytorch, headlight } = memory[at];
    figure.replaceChildren(bars("MB", names, [weights, pytorch, headlight], weights, 0));
  };
  return lesson(
    "memory",
    "The n×n matrix need not be stored",
    says("Every query has a weight for every key: n² numbers for each head. But a row of weights is needed only while its blend is made. Going through the keys in blocks, with a running maximum and a running sum, gives the same output and keeps one number for each row; the backward pass makes the weights again (Dao et al. 2022). Work still grows with n², memory with n."),
    slider("tokens n", memory.map(({ length }) => thousands(length)), memory.length - 1, show),
    figure,
    says("Causal attention, forward and backward, 8 heads of width 64, single precision. Measured: by how much the process's peak memory grew, from this project's docs/results/benchmarks.md; PyTorch too does not store the weights here. Not measured: the first bar, 8 · n² · 4 bytes."),
  );
}
