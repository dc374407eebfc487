// What a mask takes out before softmax.
import { choice, element, fixed } from "./elements.js";
import { lesson, says } from "./learn_controls.js";
import { exercise } from "./learn_exercises.js";
import { matrix, table } from "./matrix.js";

/** The weights of the worked example under each mask. */
export function maskLesson({ tokens, masks }) {
  const place = element("div", { "aria-live": "polite" });
  const show = (at) => {
    const { may_attend: mayAttend, weights } = masks[at];
    const figure = matrix({
      name: "A", table: table(tokens.length, tokens.length, weights.flat()), rowLabels: tokens, columnLabels: tokens, weights: true,
      shows: (query, key) => mayAttend[query][key],
    });
    const sums = weights.map((row, query) => `${tokens[query]} ${fixed(row.reduce((sum, weight) => sum + weight, 0), 2)}`);
    place.replaceChildren(element("div", { class: "mask" }, figure.node), element("p", { class: "readout" }, `Each row sums to 1: ${sums.join(", ")}.`));
  };
  const masked = choice("Mask", masks.map(({ name }, value) => ({ value, text: name })), 0, show);
  show(0);
  const causal = masks.find(({ name }) => name === "causal");
  return lesson(
    "mask",
    "A mask says who may attend",
    says("A model that writes text must not see the token that it is to write. So a causal mask lets a query attend to itself and to the keys before it. What is masked is taken out before softmax: it gets weight 0, and the rest of the row shares the whole weight. A window lets a query see the last few keys only."),
    masked.node,
    place,
    exercise({
      question: `with the causal mask, which weight does ${tokens[0]} give to itself?`,
      options: ["0.25", "about 0.5", "1"],
      right: Math.abs(causal.weights[0][0] - 1) < 1e-6 ? 2 : Math.abs(causal.weights[0][0] - 0.25) < 1e-6 ? 0 : 1,
      reveal: () => says(`Nothing stands before ${tokens[0]}: its row has one key, and a row sums to 1. A[0, 0] = ${fixed(causal.weights[0][0], 4)}.`),
    }),
  );
}
