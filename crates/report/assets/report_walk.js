// The walk through the chosen head.
import { element, inSightFirst } from "./elements.js";
import { headName, roleOf, walkedHeads, walkSource } from "./report_data.js";
import { walk } from "./walk.js";

export function walkSection(state) {
  if (!walkedHeads.length) return null;
  const first = walkedHeads.includes(state.head) ? state.head : walkedHeads[0];
  const source = walkSource(first);
  const walker = walk(source, lastRepeated(source.tokens));
  const picker = element(
    "select",
    { "aria-label": "Head to walk through", onchange: () => state.choose(Number(picker.value)) },
    walkedHeads.map((head) =>
      element("option", { value: head, selected: head === first }, `${headName(head)} ${roleOf(head)}`),
    ),
  );
  const show = () => {
    if (!walkedHeads.includes(state.head)) return;
    picker.value = state.head;
    walker.show(walkSource(state.head));
  };
  state.onHead.push(inSightFirst(walker.node, show));
  return element(
    "section",
    { id: "walk" },
    element("h2", {}, "The walk: one head, step by step"),
    element(
      "p",
      {},
      "The model's own numbers after training, on one probe sequence. A click on a cell shows the row times the column that made it; a click on a token marks its row in every matrix.",
    ),
    element("label", {}, "head ", picker),
    walker.node,
  );
}

/** A token that stood before, where an induction head has something to find; the last of them. */
function lastRepeated(tokens) {
  const at = tokens.findLastIndex((token, i) => tokens.indexOf(token) < i);
  return at < 0 ? tokens.length - 1 : at;
}
