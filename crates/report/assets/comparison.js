// Runs side by side.
import { comparedCurves } from "./comparison_curves.js";
import { halfWayTable, keysTable, measuresTable, range, rolesTable } from "./comparison_tables.js";
import { element, fixed } from "./elements.js";
import { themeButton } from "./theme.js";

const { sides, measures, roles } = pageData;

const OVER = {
  same_sequences: "over the same validation sequences",
  sequences: "over each side's own validation sequences",
  seeds: "over seeds, by Welch's t",
};

/** What comes first: the accuracies, and the heads that look like the role that takes most to tell. */
function finding() {
  const [accuracy] = measures;
  const told = accuracy.sides.map(({ mean }, at) => `${fixed(mean, 3)} (${sides[at].name})`);
  const sentences = [sides.length === 1 ? `Mean accuracy ${fixed(accuracy.sides[0].mean, 3)}, from ${range(accuracy.sides[0].values, 3).replace("–", " to ")}.` : `Accuracy: ${told.join(", ")}.`];
  accuracy.differences.forEach((found, at) => {
    if (found) sentences.push(`${sides[at].name} differs from ${sides[0].name} by ${fixed(found.mean, 3)} (95 % interval ${fixed(found.low, 3)} to ${fixed(found.high, 3)}, ${OVER[found.over]}).`);
  });
  const [role] = roles;
  if (role) sentences.push(roleInWords(role));
  return element("p", { class: "finding" }, sentences.join(" "));
}

/** How many heads look like it; of one side also since when, and what is left without them. */
function roleInWords({ role, sides: found }) {
  if (sides.length > 1) {
    return `Heads that look like ${role}: ${found.map(({ count }, at) => `${range(count.values, 0)} in ${sides[at].name}`).join(", ")}.`;
  }
  const [{ count, emerged, without }] = found;
  return `Heads that look like ${role}: ${range(count.values, 0)} a seed, first at step ${range(emerged.values, 0)}. Accuracy without them: ${range(without.values, 3)}.`;
}

/** Where each run's own page is. */
function links() {
  const of = ({ name, runs }) => {
    const own = runs.map(({ seed, report }) => (report ? element("a", { href: report }, runs.length > 1 ? `seed ${seed}` : "its report") : element("span", { class: "soft" }, runs.length > 1 ? `seed ${seed}: no report` : "no report")));
    return element("span", {}, element("b", {}, name), " ", own.flatMap((link) => [link, " "]));
  };
  return element("p", { class: "under" }, sides.map(of));
}

const section = (id, title, ...children) => element("section", { id }, element("h2", {}, title), ...children);
const hasSeeds = sides.some(({ runs }) => runs.length > 1);
const every = [...new Set(sides.map(({ logged_every: steps }) => steps))].join(" and ");

const [accuracyCurves, ...otherCurves] = comparedCurves();

document.getElementById("page").classList.add("wide");
document.getElementById("page").append(
  element("header", {}, element("h1", {}, document.title), themeButton()),
  finding(),
  links(),
  element("div", { id: "roles", class: "two first" },
    element("div", {},
      rolesTable(),
      element("p", { class: "hint" }, `Heads are matched by what they look like on the probe, not by number. Heads were scored every ${every} steps, so a step is known no better.${hasSeeds ? " A range is the lowest and the highest value of the seeds." : ""} The last column: accuracy without all heads that look so.`)),
    accuracyCurves),
  section("training", "Over training", element("div", { class: "two" }, otherCurves), halfWayTable()),
  section("end", "At the end",
    element("p", {}, sides.length === 1 ? "A range is the lowest and the highest value of the seeds." : "±: half of the 95 % interval. Of one run it is over its validation sequences (bootstrap); of several seeds it is that of their mean (Student's t); of a difference see above."),
    measuresTable(), keysTable()),
);
