// Runs that differ in the seed alone: how much of this one is chance?
import { dataTable, tableRow } from "./data_table.js";
import { element, fixed } from "./elements.js";

export function seedsTable() {
  const { seeds } = pageData;
  if (!seeds) return null;
  const columns = ["", "mean", "95 % interval of the mean", ...seeds.seeds.map((seed) => `seed ${seed}`)];
  /** Steps and numbers of heads stand on a grid: they have a range, and no interval of a mean. */
  const ranges = (all, name, digits) =>
    Object.entries(all).map(([of, { values }]) => {
      const known = values.filter((value) => value !== null);
      const range = `range ${fixed(Math.min(...known), digits)} to ${fixed(Math.max(...known), digits)}`;
      return tableRow(name(of), ["–", range, ...values.map((value) => fixed(value, digits))]);
    });
  const rows = (spreads, name, digits) =>
    Object.entries(spreads).map(([of, { mean, low, high, values }]) => {
      const range = low === null ? "–" : `${fixed(low, digits)} to ${fixed(high, digits)}`;
      return tableRow(name(of), [fixed(mean, digits), range, ...values.map((value) => fixed(value, digits))]);
    });
  const all = [
    ...ranges(seeds.emergence, (role) => `step at which a head first looks like ${role}`, 0),
    ...ranges(seeds.half_way, (measure) => `step at which ${measure} is half of its way`, 0),
    ...ranges(seeds.heads, (role) => `heads that look like ${role} at the end`, 0),
    ...rows(seeds.measures, (measure) => `${measure} at the end`, 4),
  ];
  return element(
    "div",
    {},
    element("h3", {}, `${seeds.seeds.length} seeds`),
    element("p", {}, `The same run with other seeds, this one is seed ${pageData.run.seed}. Losses are in nats.`),
    dataTable("Spread over seeds", columns, all),
  );
}
