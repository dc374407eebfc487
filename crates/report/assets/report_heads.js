// One head: its pattern, what it looks like, what it is used as.
import { choice, element, fixed, interval, toggle } from "./elements.js";
import { heatmap } from "./heatmap.js";
import {
  hasValueNorms,
  headName,
  measureOf,
  patternIndexFor,
  patternOf,
  patternSteps,
  roleOf,
  scoreAt,
  scoreSeries,
  sequences,
} from "./report_data.js";
import { usedAs } from "./report_causal.js";
import { weightPairs } from "./report_weights.js";
import { headWhy } from "./report_why.js";
import { KIND, ROLE } from "./vocabulary.js";

/** The head chosen in `state`, drawn anew when head, step or sequence change. */
export function headSection(state) {
  const title = element("h3", {});
  const note = element("p", { class: "hint" });
  const ways = { hideFirst: false, renormalise: false, valueWeighted: false };
  const at = () => patternIndexFor(state.step);
  const why = headWhy();
  let picked = null;
  const onPick = (place) => why.at(state.head, (picked = place), state.sequence, at());
  const map = patternSteps.length ? heatmap(patternOf(state.sequence, at(), state.head, ways), { onPick }) : null;
  const beside = element("div", {});

  function paint() {
    title.textContent = `${headName(state.head)}, at step ${state.step}`;
    if (map) {
      map.show(patternOf(state.sequence, at(), state.head, ways));
      note.textContent =
        ways.valueWeighted && !hasValueNorms(state.sequence, at())
          ? "Not weighted by values: their norms are kept of the last step only."
          : `Weights to the nearest 1/255, of step ${patternSteps[at()]}.`;
    }
    why.at(state.head, picked, state.sequence, at());
    beside.replaceChildren(looksLike(state), usedAs(state.head), weightPairs(state.head) ?? "");
  }

  const way = (text, name) =>
    toggle(text, false, (on) => {
      ways[name] = on;
      paint();
    });
  const picker = element(
    "select",
    { "aria-label": "Head", onchange: () => state.choose(Number(picker.value)) },
    pageData.heads.map(([name, role], head) =>
      element("option", { value: head, selected: head === state.head }, `${name} ${role}`),
    ),
  );
  state.onHead.push(() => {
    picker.value = state.head;
    paint();
  });
  state.onStep.push(paint);
  state.onSequence.push(paint);
  return element(
    "section",
    { id: "head" },
    element("h2", {}, "One head"),
    element(
      "div",
      { class: "controls" },
      element("label", {}, "head ", picker),
      sequences.length ? choice("Sequence", sequences, state.sequence, state.toSequence).node : null,
    ),
    title,
    element(
      "div",
      { class: "two" },
      element(
        "div",
        {},
        element(
          "div",
          { class: "controls" },
          way("hide the first token", "hideFirst"),
          way("make rows sum to 1 again", "renormalise"),
          way("weight by value norms", "valueWeighted"),
        ),
        map?.node ?? element("p", {}, "No patterns are on this page."),
        note,
        why.node,
      ),
      beside,
    ),
  );
}

/** What the head scores at the same places when the probe's tokens are shuffled; a head that goes by position does not care. */
function shuffled(series, head, isLast) {
  const score = series.on === KIND.probe && isLast ? pageData.shuffled[head]?.[series.name] : undefined;
  return score ? fixed(score.value, 3) : "–";
}

/** At which positions a head holds roles at the end, how surely, and how much it writes. */
function positionsHeld(head) {
  const { ranges, check, writes } = pageData.positions[head] ?? { ranges: [] };
  const sentences = ranges.map(
    ({ role, first, last, share, low, high, writes }) =>
      `Positions ${first}–${last}: ${role}, ${fixed(share, 2)} (${interval(low, high)}) of the way from evenly spread attention to the ceiling; there it writes ${fixed(writes, 2)} of the stream.`,
  );
  if (check && !check.is_sure) sentences.push("Of so many heads and measures, some look so by chance: the role is not sure.");
  if (typeof writes === "number") sentences.push(`It writes ${fixed(writes, 2)} of the stream (root mean square, its mean taken off).`);
  return sentences;
}

/** The scores of a head at the step on show on the probe and on the task, each against its ceiling and nulls. */
function looksLike({ head, step }) {
  const index = pageData.steps.indexOf(step);
  const isLast = index === pageData.steps.length - 1;
  const row = (series) => {
    const [score, before] = [scoreAt(series, index, head), scoreAt(series, 0, head)];
    if (!score) return null;
    const [value, low, high] = score;
    const cells = [
      fixed(value, 3),
      interval(low, high),
      fixed(series.null, 3),
      before ? fixed(before[0], 3) : "–",
      shuffled(series, head, isLast),
      fixed(series.ceiling, Number.isInteger(series.ceiling) ? 0 : 3),
    ];
    const role = measureOf(series.name)?.is_role && series.on === KIND.probe && isLast && series.name === roleOf(head);
    return element(
      "tr",
      { class: role ? "here" : null },
      element("th", { scope: "row", title: measureOf(series.name)?.formula }, series.name),
      cells.map((text) => element("td", {}, text)),
    );
  };
  const columns = ["value", "95 % interval", "uniform", "step 0", "shuffled", "ceiling"];
  const group = (on, text) => {
    const rows = scoreSeries
      .filter((series) => series.on === on)
      .map(row)
      .filter(Boolean);
    const header = [text, ...columns].map((name) => element("th", { scope: "col" }, name));
    return rows.length ? [element("thead", {}, element("tr", {}, header)), element("tbody", {}, rows)] : null;
  };
  const role = roleOf(head);
  const meaning =
    role === ROLE.mixed
      ? "no score is half of the way from evenly spread attention to its ceiling"
      : `it ${measureOf(role)?.does}`;
  return element(
    "div",
    {},
    element("h3", {}, "Looks like"),
    element("p", {}, isLast ? `${role[0].toUpperCase()}${role.slice(1)}: ${meaning}.` : `At the end: ${role}.`),
    role === ROLE.mixed ? null : element("p", { class: "hint" }, measureOf(role)?.rate ?? ""),
    positionsHeld(head).map((sentence) => element("p", {}, sentence)),
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Scores" },
      element(
        "table",
        { class: "dense" },
        group(KIND.probe, "on the probe"),
        group(KIND.task, `on the task, ${pageData.run.task}`),
      ),
    ),
    element(
      "details",
      {},
      element("summary", {}, "How the scores are computed"),
      element(
        "dl",
        {},
        pageData.measures.flatMap(({ name, formula, rate }) => [
          element("dt", {}, name),
          element("dd", {}, formula, rate ? `. ${rate}` : ""),
        ]),
      ),
    ),
  );
}
