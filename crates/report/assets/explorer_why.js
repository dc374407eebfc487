// In the live explorer: why the chosen head looks at the key of the cell that was clicked.
import { ask, latest } from "./explorer_asks.js";
import { whyPanel } from "./why.js";

const HOW = "Click a cell of the pattern. It is told of the model as it is, without changes.";

/** The panel. `at(prompt, head, place)` asks about a cell `{row: query, column: key}`; without one it says how to ask. */
export function explorerWhy() {
  const panel = whyPanel();
  const asked = latest(
    (signal, question) => (question ? ask("/why", question, signal) : null),
    (data) => (data ? panel.show(data) : panel.say(HOW)),
    (error) => panel.say(error.message),
  );
  const at = (prompt, head, place) => {
    const isCell = prompt !== undefined && place !== null && place.row !== null && place.column !== null;
    return asked(isCell ? { prompt, head, query: place.row, key: place.column } : null);
  };
  panel.say(HOW);
  return { node: panel.node, at };
}
