// Runs that differ in the seed alone: how much of this one is chance?
import { dataTable, tableRow } from "./data_table.js";
import { element, fixed } from "./elements.js";

export function seedsTable() {
  const { seeds } = pageData;
  if (!seeds) return null;
  const columns = ["", "mean", "95 % interval of the mean", ...seeds.seeds.map((seed) => `seed ${seed}`)];
  const rows = (spreads, name, digits) =>
    Object.entries(spreads).map(([of, { mean, low, high, values }]) => {
      const range = low === null ? "–" : `${fixed(low, digits)} to ${fixed(high, digits)}`;
      return tableRow(name(of), [fixed(mean, digits), range, ...values.map((value) => fixed(value, digits))]);
    });
  const all = [
    ...rows(seeds.emergence, (role) => `step at which a head first looks like ${role}`, 0),
    ...rows(seeds.half_way, (measure) => `step at which ${measure} is half of its way`, 0),
    ...rows(seeds.heads, (role) => `heads that look like ${role} at the end`, 1),
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
