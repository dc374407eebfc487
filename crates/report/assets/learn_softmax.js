// What softmax makes of scores, and what weights make of values.
import { element, fixed } from "./elements.js";
import { bars, lesson, says, slider } from "./learn_controls.js";

const entropy = (weights) => -weights.reduce((sum, w) => sum + (w > 0 ? w * Math.log(w) : 0), 0);

/** Softmax of random scores, raw and scaled. */
export function saturationLesson({ saturation }) {
  const figure = element("div", { class: "two", "aria-live": "polite" });
  const keys = saturation[0].raw.map((_, i) => `key ${i}`);
  const side = (name, weights) => bars(`${name}: entropy ${fixed(entropy(weights), 2)} of at most ${fixed(Math.log(keys.length), 2)} nats`, keys, weights);
  const show = (at) => figure.replaceChildren(side("softmax(q·k)", saturation[at].raw), side("softmax(q·k/√d_k)", saturation[at].scaled));
  return lesson(
    "saturation",
    "What large scores do to softmax",
    says("One random query against eight random keys. Without the division, a wide head gives nearly all its weight to one key before it has learned anything, and the gradient that could change this is for most queries next to zero. With it, the weights keep their shape."),
    slider("d_k", saturation.map(({ d }) => String(d)), 6, show),
    figure,
  );
}

/** The same scores through softmax and through plain normalising. */
export function sharpeningLesson({ sharpening: { scores, plain, softmax } }) {
  const figure = element("div", { class: "two", "aria-live": "polite" });
  const labels = (factor) => scores.map((score) => `score ${fixed(score * factor, 2)}`);
  const show = (at) => {
    const [factor, weights] = softmax[at];
    figure.replaceChildren(bars("score / sum of scores", labels(factor), plain), bars("softmax(scores)", labels(factor), weights));
  };
  return lesson(
    "sharpening",
    "Softmax sharpens",
    says("To divide scores by their sum would also give numbers that sum to 1. But softmax takes exp first: what counts is the difference of two scores, not their ratio. Make all scores larger, and plain normalising stays as it is, while softmax moves to the largest. The factor 1/√d_k keeps it in the middle of that range. Softmax also takes negative scores, of which a plain share makes no sense."),
    slider("all scores ×", softmax.map(([factor]) => String(factor)), 2, show),
    figure,
  );
}

/** A head that looks at what carries nothing. */
export function valueLesson({ tokens, values }) {
  const figure = element("div", { class: "two", "aria-live": "polite" });
  const largest = Math.max(...values.flatMap(({ moved }) => moved));
  const most = values[0].weights.indexOf(Math.max(...values[0].weights));
  const show = (at) => {
    const { weights, moved } = values[at];
    figure.replaceChildren(bars("cat's weights A", tokens, weights), bars("what they move: weight × ‖value‖", tokens, moved, largest));
  };
  return lesson(
    "values",
    "A weight is not yet an effect",
    says(`In the worked example cat looks most at ${tokens[most]}. Shrink the value of ${tokens[most]}: the weights stay as they were, since values have no part in them, but less and less comes over. A trained head can park its weight on a token whose value is near zero and so write nothing. That is why this project shows patterns weighted by values too, and tests what a head is used as by taking it away.`),
    slider(`value of ${tokens[most]} ×`, values.map(({ factor }) => String(factor)), 0, show),
    figure,
  );
}
