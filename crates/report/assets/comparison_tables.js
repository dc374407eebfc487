// The tables of a comparison: the configurations, the numbers at the end, the heads by role.
import { dataTable, tableRow } from "./data_table.js";
import { element, fixed } from "./elements.js";

const names = () => pageData.sides.map(({ name }) => name);
const isOne = () => pageData.sides.length === 1;

/** Words stand to the left. */
const words = (text) => element("td", { class: "text" }, text);

/** The keys that differ. */
export function keysTable() {
  if (!pageData.keys.length) return null;
  const rows = pageData.keys.map(([key, values]) => tableRow(key, values));
  return element("div", {}, element("h3", {}, "What differs in the configurations"), dataTable("What differs", ["key", ...names()], rows));
}

/** What was measured at the end: a column for each side and its difference to the first, or for each seed. */
export function measuresTable() {
  const columns = isOne()
    ? ["", "mean", "95 % interval of the mean", ...pageData.sides[0].runs.map(({ seed }) => `seed ${seed}`)]
    : ["", ...pageData.sides.flatMap(({ name }, at) => (at ? [name, `− ${names()[0]}`] : [name]))];
  const rows = pageData.measures.map(({ name, sides, differences }) => {
    if (isOne()) {
      const [{ mean, interval, values }] = sides;
      return tableRow(name, [fixed(mean, 4), interval ? `${fixed(interval.low, 4)} to ${fixed(interval.high, 4)}` : "–", ...values.map((value) => fixed(value, 4))]);
    }
    return tableRow(name, sides.flatMap((side, at) => (at ? [withHalf(side), difference(differences[at])] : [withHalf(side)])));
  });
  return dataTable("At the end", columns, rows);
}

function withHalf({ mean, interval }) {
  return interval ? `${fixed(mean, 4)} ± ${fixed((interval.high - interval.low) / 2, 4)}` : fixed(mean, 4);
}

function difference(found) {
  if (!found) return "–";
  const sign = found.mean > 0 ? "+" : "";
  return `${sign}${fixed(found.mean, 4)} ± ${fixed((found.high - found.low) / 2, 4)}`;
}

/** When each curve had gone half of its way. */
export function halfWayTable() {
  const columns = isOne() ? ["half of its way at step", "range", ...pageData.sides[0].runs.map(({ seed }) => `seed ${seed}`)] : ["half of its way at step", ...names()];
  const rows = pageData.half_way.map(([name, sides]) => {
    const ranges = sides.map(({ values }) => range(values, 0));
    return tableRow(name, isOne() ? [...ranges, ...sides[0].values.map((value) => fixed(value, 0))] : ranges);
  });
  return dataTable("Half of its way", columns, rows);
}

/** What is known of the heads of each role, by side, or by seed where there is one side. */
export function rolesTable() {
  if (!pageData.roles.length) return element("p", {}, "No head of any run looks like anything.");
  const columns = isOne()
    ? ["looks like", "", "range", ...pageData.sides[0].runs.map(({ seed }) => `seed ${seed}`)]
    : ["looks like", "", ...names()];
  const line = (role, name, of, ofRuns) => {
    const [first] = role.sides;
    const cells = isOne() ? [of(first), ...ofRuns(first)] : role.sides.map(of);
    return tableRow(role.role, [words(name), ...cells]);
  };
  const numbers = (key, digits) => [
    (side) => range(side[key].values, digits),
    (side) => side[key].values.map((value) => fixed(value, digits)),
  ];
  const rows = pageData.roles.flatMap((role) => [
    line(role, "heads", (side) => (side.heads.length === 1 ? headNames(side.heads[0]) : range(side.count.values, 0)), (side) => side.heads.map(headNames)),
    line(role, "highest score of all heads", ...numbers("highest", 3)),
    line(role, "first looked so at step", ...numbers("emerged", 0)),
    line(role, "accuracy without all of them", ...numbers("without", 3)),
  ]);
  return dataTable("Heads by role", columns, rows);
}

const headNames = (heads) => (heads.length ? (heads.length > 6 ? String(heads.length) : heads.join(" ")) : "none");

/** The lowest and the highest value, and of how many runs they are. */
export function range(values, digits) {
  const known = values.filter((value) => value !== null);
  if (!known.length) return "–";
  const [low, high] = [Math.min(...known), Math.max(...known)].map((value) => fixed(value, digits));
  const count = known.length < values.length ? ` (${known.length} of ${values.length})` : "";
  return `${low === high ? low : `${low}–${high}`}${count}`;
}
