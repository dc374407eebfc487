// The scores of heads over the steps of a run under way.
import { curves } from "./curves.js";
import { choice, element } from "./elements.js";

/** With more heads, only those that score highest now are drawn. */
const MOST_LINES = 8;

/** One measure at a time, a line a head. `add(rows)` takes the rows that are new. */
export function liveScores({ measures, steps }) {
  /** By head: `[step, values]`. */
  const heads = new Map();
  let measure = 0;
  const plot = curves(plotOf());
  const options = measures.map((name, value) => ({ value, text: name }));
  const choose = choice("Score", options, measure, (chosen) => {
    measure = chosen;
    plot.show(plotOf());
  });

  function plotOf() {
    const lines = [...heads].map(([name, rows], at) => ({
      name,
      colour: at,
      points: rows.map(([step, values]) => [step, values[measure]]).filter(([, value]) => value !== null),
    }));
    const now = ({ points }) => points.at(-1)?.[1] ?? -1;
    const highest = lines.filter(({ points }) => points.length).sort((a, b) => now(b) - now(a)).slice(0, MOST_LINES);
    const left = heads.size > MOST_LINES ? `, the ${MOST_LINES} highest of ${heads.size} heads` : "";
    return {
      name: `${measures[measure]} score on the probe${left}`,
      y: { name: measures[measure], low: 0, high: 1 },
      lines: highest.sort((a, b) => a.colour - b.colour),
      last: steps,
    };
  }

  function add(rows) {
    for (const { step, head, values } of rows) {
      if (!heads.has(head)) heads.set(head, []);
      heads.get(head).push([step, values]);
    }
    if (rows.length) plot.show(plotOf());
  }

  return { node: element("div", {}, choose.node, plot.node), add };
}
