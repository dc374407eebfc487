// The curves of several runs over each other.
import { curves } from "./curves.js";

/** Every quantity as a plot. The runs of a side share its colour; of one side each seed has its own. */
export function comparedCurves() {
  return pageData.curves.map((quantity) => curves(plotOf(quantity)).node);
}

const isOne = pageData.sides.length === 1;

function plotOf({ name, highest, levels, runs }) {
  const lines = runs.map(({ side, run, points }) => ({ name: nameOf(side, run), points, colour: isOne ? run : side }));
  return {
    name: name[0].toUpperCase() + name.slice(1),
    // The title says of what; a phone has no room to say it twice.
    y: { name: name.replace(/ of all heads$/, ""), low: 0, high: highest },
    lines,
    levels: levels.map(([level, value]) => ({ name: level, value })),
  };
}

function nameOf(side, run) {
  const { name, runs } = pageData.sides[side];
  if (isOne) return `seed ${runs[run].seed}`;
  return runs.length > 1 ? `${name}, seed ${runs[run].seed}` : name;
}
