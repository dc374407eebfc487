// The learn page: attention in ten figures, every number computed by this project's own code.
import { element } from "./elements.js";
import { lesson, says } from "./learn_controls.js";
import { largestWeight, runLesson, spreadOfWidths } from "./learn_exercises.js";
import { headsLesson, memoryLesson } from "./learn_heads.js";
import { maskLesson } from "./learn_mask.js";
import { cloudLesson, exampleTable, scoresLesson } from "./learn_scores.js";
import { saturationLesson, sharpeningLesson, valueLesson } from "./learn_softmax.js";
import { themeButton } from "./theme.js";
import { walk } from "./walk.js";

/** The worked example as the walk takes it: no mask, and nothing is written back to a stream. */
function exampleLesson({ tokens, example }) {
  const of = (name) => exampleTable(example[name]);
  const source = {
    tokens, stream: of("X"), says: "The input: a row for each token. Its numbers were chosen by hand, those of the three W too; all others follow.",
    q: of("Q"), k: of("K"), v: of("V"), weights: { q: of("W_Q"), k: of("W_K"), v: of("W_V") }, biases: {},
    scale: 0.5, scaleName: "1/√4", scores: of("scaled"), pattern: of("weights"), z: of("output"), attends: () => true, masked: false,
  };
  return lesson(
    "example",
    "The whole head, on four tokens",
    says("One head reads The cat sat down: d_model 8, d_k = d_v = 4, no mask. Go through the stages; click a number to see what made it, a token to mark its row everywhere. The program worked_example prints the same numbers."),
    walk(source, 1).node,
  );
}

const [queries, scores] = scoresLesson(pageData);
scores.append(largestWeight(pageData, pageData.tokens.indexOf("sat")));
const scale = cloudLesson(pageData);
scale.append(spreadOfWidths(pageData));
// From scores to weights, then the whole head: nothing is used before it was explained.
const lessons = [
  queries,
  scores,
  scale,
  saturationLesson(pageData),
  sharpeningLesson(pageData),
  maskLesson(pageData),
  exampleLesson(pageData),
  valueLesson(pageData),
  headsLesson(pageData),
  memoryLesson(pageData),
  runLesson(pageData),
].filter(Boolean);

/** The lessons by name, and the way back to the report that the page stands beside. */
function contents() {
  const links = lessons.map((section) => element("a", { href: `#${section.id}` }, section.querySelector("h2").textContent));
  const back = pageData.run ? element("a", { class: "back", href: pageData.run.report }, `← report of ${pageData.run.name}`) : null;
  return element("nav", { class: "contents", "aria-label": "Contents" }, back, links);
}

document.getElementById("page").append(
  element("header", {}, element("h1", {}, "How attention works"), themeButton()),
  contents(),
  says("Attention lets each token look at others and take over what they carry. A query says what a token looks for, a key what a token can be found by, a value what it hands over. Three matrices make them from the token's row: W_Q, W_K and W_V, the parameters, are learned and stored; Q, K and V, the activations, are made anew for each sentence. All numbers on this page were computed by this project's own code."),
  ...lessons,
);
