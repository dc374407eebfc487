// In the live explorer: the circuit of a kind of pairs, computed when somebody asks for it.
import { circuitView } from "./circuit.js";
import { element } from "./elements.js";
import { ask, latest } from "./explorer_asks.js";

/** `kinds` are pairs of name and words, `edges` how many there are, `isLarge` whether it takes minutes. */
export function explorerCircuit({ kinds, edges, is_large: isLarge }, run, onHead) {
  const place = element("div", { "aria-live": "polite" });
  const warning = element("p", { class: "error", role: "alert" });
  const asked = latest(
    (signal, pairs) => {
      warning.textContent = "";
      const patience = isLarge ? "This takes minutes: a gradient at many points, then the hundred best edges." : "This takes some seconds.";
      place.replaceChildren(element("p", { class: "hint" }, `Looking for the circuit of ${pairs} pairs among ${edges} edges. ${patience}`));
      return ask("/circuit", { pairs }, signal);
    },
    (circuit) => place.replaceChildren(circuitView(circuit, { run, onHead }).node),
    (error) => {
      place.replaceChildren();
      warning.textContent = error.message;
    },
  );
  const buttons = kinds.map(([name, words]) => {
    const press = () => {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent.startsWith(`${name}:`)));
      asked(name);
    };
    return element("button", { type: "button", "aria-pressed": "false", onclick: press }, `${name}: ${words}`);
  });
  return element("div", {}, element("div", { class: "choice", role: "group", "aria-label": "Pairs of prompts" }, buttons), warning, place);
}
