// Questions to answer before the numbers are seen.
import { element, fixed } from "./elements.js";
import { bars, lesson, says } from "./learn_controls.js";

/**
 * A question with answers to choose from. `right` is the number of the right one, `reveal()` gives what the numbers say;
 * it is not on the page before an answer was chosen.
 */
export function exercise({ question, options, right, reveal }) {
  const told = element("div", { "aria-live": "polite" });
  const buttons = options.map((text, at) => element("button", { type: "button", "aria-pressed": "false", onclick: () => answer(at) }, text));
  function answer(at) {
    buttons.forEach((button, other) => {
      button.setAttribute("aria-pressed", String(other === at));
      button.classList.toggle("right", other === right);
    });
    const verdict = at === right ? "Right." : `Not so: ${options[right]}.`;
    told.replaceChildren(element("p", { class: "verdict" }, verdict), ...[reveal()].flat());
  }
  return element("div", { class: "exercise" }, element("p", {}, element("b", {}, "Predict: "), question), element("div", { class: "choice" }, buttons), told);
}

const largest = (numbers) => numbers.indexOf(Math.max(...numbers));

/** Which token a query of the worked example looks at most. */
export function largestWeight({ tokens, example }, query) {
  const weights = example.weights[query];
  const scores = example.scores[query];
  return exercise({
    question: `which token does ${tokens[query]} look at most? Its scores are ${scores.map((score, key) => `${fixed(score, 2)} for ${tokens[key]}`).join(", ")}.`,
    options: tokens,
    right: largest(weights),
    reveal: () => [bars(`${tokens[query]}'s weights A`, tokens, weights), says("The largest score has the largest weight: softmax keeps the order of a row.")],
  });
}

const spread = (numbers) => Math.sqrt(numbers.reduce((sum, x) => sum + x * x, 0) / numbers.length);

/** By how much dot products grow with the width. */
export function spreadOfWidths({ clouds }) {
  const [narrow, wide] = [16, 256].map((d) => clouds.find((cloud) => cloud.d === d));
  const ratio = spread(wide.dot_products) / spread(narrow.dot_products);
  const factors = [1, 2, 4, 16];
  const distance = (factor) => Math.abs(Math.log(ratio / factor));
  const right = factors.reduce((best, factor, at) => (distance(factor) < distance(factors[best]) ? at : best), 0);
  return exercise({
    question: "the width d goes from 16 to 256. How many times wider do the dots of q·k spread?",
    options: factors.map((factor) => (factor === 1 ? "as wide as before" : `${factor} times`)),
    right,
    reveal: () => says(`Measured on these dots: ${fixed(spread(narrow.dot_products), 2)} at d = 16, ${fixed(spread(wide.dot_products), 2)} at d = 256, ${fixed(ratio, 2)} times. √(256/16) = 4.`),
  });
}

const LEFT = ["nearly all of it, more than 0.9", "between 0.3 and 0.9 of it", "less than 0.3 of it"];

/** What is left of a trained run without some of its heads. */
export function runLesson({ run }) {
  if (!run || !run.removed.length) return null;
  const asked = run.removed.map(({ heads, role, accuracy }) => {
    const share = accuracy / run.accuracy;
    const names = heads.join(", ");
    return exercise({
      question: `${names} ${heads.length > 1 ? "look" : "looks"} like ${role}. How much of the accuracy is left without ${heads.length > 1 ? "all of them" : "it"}?`,
      options: LEFT,
      right: share > 0.9 ? 0 : share >= 0.3 ? 1 : 2,
      reveal: () => bars(`accuracy of ${run.name}`, ["all heads", `without ${names}`], [run.accuracy, accuracy]),
    });
  });
  return lesson(
    "run",
    "A trained model: what will switching a head off do?",
    says(`The run ${run.name} has ${fixed(run.accuracy, 3)} accuracy. A head that is off leaves its mean, so only what differs from place to place is lost.`),
    ...asked,
    says("A head that others can replace costs nothing alone: only the set of them shows what they do. Its report has every head: ", element("a", { href: run.report }, "the report"), "."),
  );
}
