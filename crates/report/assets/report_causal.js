// What heads are used as: what is lost without them, and which input of a later layer needs them.
import { element, fixed, interval } from "./elements.js";
import { headName, layerOf, roleOf } from "./report_data.js";

/** Ablation and path tests of one head, as bars. */
export function usedAs(head) {
  const { causal } = pageData;
  if (!causal) return null;
  const name = headName(head);
  const alone = causal.alone.find(({ heads }) => heads.length === 1 && heads[0] === name);
  const together = causal.sets.filter(({ heads }) => heads.includes(name) && heads.length > 1);
  const writes = causal.paths.filter(({ writer }) => writer === name);
  const reads = causal.paths.filter(({ reader, writer }) => reader === layerOf(head) && writer.startsWith("layer"));
  const bars = [
    ["nothing switched off", causal.untouched],
    alone && [`${name} switched off`, alone.left],
    ...together.flatMap(({ role, heads, left, controls }) => [
      [`all ${role} heads off: ${heads.join(" ")}`, left],
      ...controls.map(([others, outcome]) => [`instead, drawn at random: ${others.join(" ")}`, outcome]),
    ]),
  ].filter(Boolean);
  const path = ({ writer, reader, input, left }) => [`${writer} hidden from the ${input} of layer ${reader}`, left];
  return element(
    "div",
    {},
    element("h3", {}, "Is used as"),
    element("p", {}, `Accuracy on the task when something is switched off (${causal.in_place}), over ${causal.sequences} sequences. Looking like something is not yet being used for it; and a head that costs nothing alone may be one of several that do the same.`),
    outcomes(bars),
    writes.length ? element("p", {}, `What ${name} wrote, hidden from one input of a later layer only:`) : null,
    writes.length ? outcomes(writes.map(path)) : null,
    reads.length ? element("p", {}, `What earlier layers wrote, hidden from one input of layer ${layerOf(head)}, which ${name} is in (${roleOf(head)}):`) : null,
    reads.length ? outcomes(reads.map(path)) : null,
  );
}

/** A bar for each accuracy, its interval as a line on it. */
function outcomes(rows) {
  const percent = (share) => `${(100 * share).toFixed(1)}%`;
  const row = ([name, { accuracy, low, high, loss }]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", class: "text" }, name),
      element("td", { class: "share", title: `95 % interval ${interval(low, high)}` },
        element("span", { class: "share-bar", style: `width: ${percent(accuracy)}` }),
        element("span", { class: "interval", style: `left: ${percent(low)}; width: ${percent(high - low)}` })),
      element("td", {}, fixed(accuracy, 3)),
      element("td", {}, fixed(loss, 3)),
    );
  const columns = ["", "accuracy", "", "loss, nats"];
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Accuracy under intervention" },
    element("table", { class: "outcomes" }, element("thead", {}, element("tr", {}, columns.map((text) => element("th", { scope: "col" }, text)))), element("tbody", {}, rows.map(row))));
}
