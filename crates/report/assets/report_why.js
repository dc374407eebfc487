// In the report: why the chosen head looks where it looks, at its typical keys or at the cell that was clicked.
import { command } from "./picture.js";
import { patternSteps, sequences } from "./report_data.js";
import { whyPanel } from "./why.js";

/** The panel. `at(head, place, sequence, stepIndex)` shows a cell `{row: query, column: key}`, or without one the typical keys. */
export function headWhy() {
  const panel = whyPanel();
  function at(head, place, sequence, stepIndex) {
    const known = pageData.why?.heads.find((why) => why.head === pageData.heads[head][0]);
    if (!known) return panel.say(`This page does not know it; ${command(pageData.run.name, "why")} tells it.`);
    if (place === null || place.row === null || place.column === null) {
      if (known.typical) return panel.show(known.typical);
      return panel.say("No query has a key that this head looks for. Click a cell of its pattern.");
    }
    if (sequence !== 0 || stepIndex !== patternSteps.length - 1)
      return panel.say(`This page knows it on ${sequences[0].text} at the last step; ${command(pageData.run.name, "why")} tells it of any sequence.`);
    const cell = known.cells.find(({ place: [query] }) => query === place.row);
    if (!cell) return panel.say("This query sees no other key.");
    const [query, key] = cell.place;
    if (key !== place.column)
      return panel.say(`This page knows it for the key that query ${query} looks at most, which is key ${key}; ${command(pageData.run.name, "why", "--head", pageData.heads[head][0], "--query", query, "--key", place.column)} tells it of another.`);
    panel.show(cell);
  }
  return { node: panel.node, at };
}
