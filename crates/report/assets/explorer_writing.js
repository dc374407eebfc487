// What the model writes on after the prompt, as it is and with heads off.
import { element, visible } from "./elements.js";
import { ask, latest } from "./explorer_asks.js";

/** `questionOf()` gives the question whose prompt and heads count. */
export function writing(questionOf) {
  const number = (name, attributes) => element("input", { type: "number", "aria-label": name, ...attributes });
  const tokens = number("Tokens to write", { min: 1, max: 256, step: 1, value: 16 });
  const temperature = number("Temperature", { min: 0, max: 10, step: 0.1, value: 0 });
  const seed = number("Seed", { min: 0, max: 999999, step: 1, value: 0 });
  const warning = element("p", { class: "error", role: "alert" });
  const place = element("div", { "aria-live": "polite" });

  const write = latest(
    async (signal) => {
      const question = questionOf();
      const asked = { tokens: tokens.valueAsNumber, temperature: temperature.valueAsNumber, seed: seed.valueAsNumber };
      const untouched = { ...question, patches: [], off: [] };
      const texts = [["untouched", await ask("/write", { ...asked, question: untouched }, signal)]];
      if (question.off.length) {
        const off = { ...question, patches: [] };
        texts.unshift([`without ${question.off.join(", ")}`, await ask("/write", { ...asked, question: off }, signal)]);
      }
      return { texts, patched: question.patches.length > 0 };
    },
    ({ texts, patched }) => {
      warning.textContent = "";
      place.replaceChildren(
        ...texts.map(([name, { tokens: written, ending }], at) => element("div", { class: "written" }, element("p", { class: "soft" }, `${name}:`), strip(written, texts[1 - at]?.[1].tokens), element("p", { class: "hint" }, `${written.length ? "It ended" : "Nothing"}: ${ending}.`))),
        ...(patched ? [element("p", { class: "hint" }, "Patches are left out: a text that grows has no positions in another prompt.")] : []),
      );
    },
    (error) => (warning.textContent = error.message),
  );

  function begin(event) {
    event.preventDefault();
    const wrong = [tokens, temperature, seed].find((input) => !input.checkValidity() || Number.isNaN(input.valueAsNumber));
    if (wrong) warning.textContent = `${wrong.getAttribute("aria-label")}: a number from ${wrong.min} to ${wrong.max}`;
    else write();
  }

  return element("div", {},
    element("form", { class: "controls", novalidate: true, onsubmit: begin },
      element("label", {}, "tokens ", tokens), element("label", {}, "temperature ", temperature), element("label", {}, "seed ", seed),
      element("button", { type: "submit" }, "write on")),
    warning, place);
}

/** Tokens in a line; those unlike `other` at the same place are marked. */
function strip(written, other) {
  const token = (text, at) => element("span", { class: other && other[at] !== text ? "token unlike" : "token" }, visible(text));
  return element("div", { class: "strip" }, written.map(token));
}
