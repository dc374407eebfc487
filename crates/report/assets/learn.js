// The learn page: attention in nine figures, every number computed by this project's own code.
import { element } from "./elements.js";
import { lesson, says } from "./learn_controls.js";
import { headsLesson, memoryLesson } from "./learn_heads.js";
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

document.getElementById("page").append(
  element("header", {}, element("h1", {}, "How attention works"), themeButton()),
  says("Attention lets each token look at others and take over what they carry. A query says what a token looks for, a key what a token can be found by, a value what it hands over. Three matrices make them from the token's row: W_Q, W_K and W_V, the parameters, are learned and stored; Q, K and V, the activations, are made anew for each sentence. All numbers on this page were computed by this project's own code."),
  ...scoresLesson(pageData),
  cloudLesson(pageData),
  saturationLesson(pageData),
  exampleLesson(pageData),
  sharpeningLesson(pageData),
  valueLesson(pageData),
  headsLesson(pageData),
  memoryLesson(pageData),
);
