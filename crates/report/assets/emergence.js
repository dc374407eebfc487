// What happened to the heads when.
import { dataTable, tableRow } from "./data_table.js";
import { element, fixed } from "./elements.js";
import { EVENT } from "./vocabulary.js";

const VERB = {
  [EVENT.emerged]: "looks",
  [EVENT.lost]: "no longer looks",
  [EVENT.rangeEmerged]: "looks",
  [EVENT.rangeLost]: "no longer looks, at any range of positions,",
};

/** Every event, a row each. */
export function emergence(events) {
  if (!events.length) return element("p", {}, "No head took on a role.");
  const row = ({ step, head, event, role, value, positions }) => {
    const at = positions ? ` at positions ${positions[0]}–${positions[1]}` : "";
    const what = `${VERB[event]} like ${role}${at}`;
    return tableRow(`step ${step}`, [element("td", { class: "text" }, head), element("td", { class: "text" }, what), fixed(value, 3)]);
  };
  return dataTable("Emergence", ["when", "head", "what happened", "score"], events.map(row));
}

/** When the first head took on each role: marks for curves. */
export function firstOfRole(events) {
  const emerged = events.filter(({ event }) => event === EVENT.emerged);
  const first = emerged.filter(({ role }, at) => emerged.findIndex((other) => other.role === role) === at);
  return first.map(({ step, head, role }) => ({ step, name: `${head} first looks like ${role}` }));
}
