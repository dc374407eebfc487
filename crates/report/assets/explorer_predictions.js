// What the model says: the probability of each token of the prompt, and what may come after one of them.
import { element, fixed, visible } from "./elements.js";

/**
 * `show(answer, isChanged)` draws an answer, `stale(message)` says that the last question has none. The predictions are
 * those after the last token, until the reader chooses another one of the same prompt. `onPosition` hears the position.
 */
export function predictionTable(onPosition) {
  const tokens = element("div", { class: "said", role: "group", "aria-label": "Position" });
  const about = element("p", { class: "readout", "aria-live": "polite" });
  const place = element("div", { "aria-live": "polite" });
  const warning = element("p", { class: "error", role: "alert" });
  const node = element("div", { class: "answer" }, warning, tokens, about, place);
  let answer = null;
  let changed = false;
  /** The position that the reader chose, or null for the last. */
  let chosen = null;

  const last = () => answer.tokens.length - 1;
  const at = () => chosen ?? last();

  function show(next, isChanged) {
    const isSamePrompt = answer !== null && next.tokens.join("\n") === answer.tokens.join("\n");
    if (!isSamePrompt) chosen = null;
    answer = next;
    changed = isChanged;
    warning.textContent = "";
    node.classList.remove("stale");
    paint();
    onPosition(at());
  }

  function stale(message) {
    warning.textContent = `Not answered: ${message}`;
    if (answer) node.classList.add("stale");
  }

  function choose(position) {
    chosen = position === last() ? null : position;
    paint();
    onPosition(at());
  }

  function paint() {
    tokens.replaceChildren(...answer.tokens.map(token));
    about.textContent = told(at());
    const tables = [column("untouched", answer.untouched[at()])];
    if (changed) tables.unshift(column("with changes", answer.predictions[at()]));
    place.replaceChildren(...tables);
    place.className = changed ? "two" : "";
  }

  /** A token, and above it a bar as high as its probability after those before it. */
  function token(text, position) {
    const room = element("span", { class: "room", "aria-hidden": "true" });
    if (position > 0) {
      const [now, before] = [answer.right[position - 1], answer.right_untouched[position - 1]];
      room.append(element("span", { class: "fill", style: `height: ${100 * now}%` }));
      if (changed) room.append(element("span", { class: "was", style: `bottom: calc(${100 * before}% - 1px)` }));
    }
    const attributes = { type: "button", "aria-pressed": String(position === at()), title: told(position), onclick: () => choose(position) };
    return element("button", attributes, room, visible(text));
  }

  function told(position) {
    const name = `Token ${position} ${visible(answer.tokens[position])}`;
    if (position === 0) return `${name} has nothing before it.`;
    const [now, before] = [answer.right, answer.right_untouched].map((right) => fixed(right[position - 1], 3));
    return changed ? `${name} has probability ${now} with changes, ${before} without.` : `${name} has probability ${now} after the tokens before it.`;
  }

  function column(name, found) {
    const row = ([text, probability]) =>
      element("tr", {}, element("th", { scope: "row" }, visible(text)), element("td", {}, probability.toFixed(4)),
        element("td", { class: "bar from-left" }, element("span", { class: "positive", style: `width: ${50 * probability}%`, "aria-hidden": "true" })));
    const caption = `after token ${at()}, ${name}`;
    return element("table", { class: "bars", "data-which": name }, element("caption", {}, caption), element("tbody", {}, found.map(row)));
  }

  return { node, show, stale };
}
