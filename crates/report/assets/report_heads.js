// One head: its pattern, what it looks like, what it is used for.
import { choice, element, fixed, inSightFirst, interval, toggle } from "./elements.js";
import { term } from "./glossary.js";
import { heatmap, patternRows, patternSvg } from "./heatmap.js";
import { command, exports } from "./picture.js";
import { usedAs } from "./report_causal.js";
import {
  hasValueNorms,
  headName,
  isFirstProbe,
  measureOf,
  patternIndexFor,
  patternOf,
  patternSteps,
  relationsOf,
  roleOf,
  scoreAt,
  scoreSeries,
  sequences,
} from "./report_data.js";
import { weightPairs } from "./report_weights.js";
import { headWhy } from "./report_why.js";
import { stepSlider } from "./step_slider.js";
import { tokenLines } from "./token_lines.js";
import { KIND, ROLE } from "./vocabulary.js";

/** The head chosen in `state`; head, step and sequence each draw anew what depends on them, what is in the window first. */
export function headSection(state) {
  const title = element("h3", {});
  const note = element("p", { class: "hint" });
  const ways = { hideFirst: false, renormalise: false, valueWeighted: false };
  let picked = null;
  const pick = (place) => {
    picked = place;
    whyHere();
  };
  const why = headWhy();
  const whyHere = () => why.at(state.head, picked, state.sequence, patternIndexFor(state.sequence, state.step));
  const picture = patternPicture(state, ways, note, pick);
  const [scores, uses] = [element("div", {}), element("div", {})];
  const parts = element(
    "div",
    { class: "two" },
    element(
      "div",
      { class: "stays" },
      picture ? stepSlider(state) : null,
      picture?.node ?? element("p", {}, "No patterns are on this page."),
      picture
        ? element(
            "div",
            { class: "controls" },
            way("hide the first token", "hideFirst"),
            way("make rows sum to 1 again", "renormalise"),
            way("weight by value norms", "valueWeighted"),
          )
        : null,
      note,
      why.node,
    ),
    element("div", {}, scores, formulas(), uses),
  );

  function paintTitle() {
    picker.value = state.head;
    const step = pageData.steps.length > 1 ? `, at step ${state.step}` : "";
    title.replaceChildren(`${headName(state.head)}, `, term(roleOf(state.head)), step);
  }

  function way(text, name) {
    return toggle(text, false, (on) => {
      ways[name] = on;
      picture.show();
    });
  }

  const picker = element(
    "select",
    { "aria-label": "Head", onchange: () => state.choose(Number(picker.value)) },
    pageData.heads.map(([name, role], head) =>
      element("option", { value: head, selected: head === state.head }, `${name} ${role}`),
    ),
  );
  const sequence = sequences.length ? choice("Sequence", sequences, state.sequence, state.toSequence) : null;
  const paintWhy = inSightFirst(why.node, whyHere);
  const paintScores = inSightFirst(scores, () => scores.replaceChildren(looksLike(state)));
  const paintUses = inSightFirst(uses, () => uses.replaceChildren(usedAs(state.head), weightPairs(state.head) ?? ""));
  if (picture) {
    const paintPattern = inSightFirst(picture.node, picture.show);
    for (const list of [state.onHead, state.onStep, state.onSequence]) list.push(paintPattern);
    if (pageData.relations.length) state.onScore.push(paintPattern);
  }
  state.onHead.push(paintTitle, paintWhy, paintScores, paintUses);
  state.onStep.push(paintTitle, paintWhy, paintScores);
  state.onSequence.push(() => sequence?.mark(state.sequence), paintWhy);
  return element(
    "section",
    { id: "head" },
    element("h2", {}, "One head"),
    element(
      "div",
      { class: "controls" },
      element("label", {}, "head ", picker),
      sequence?.node ?? null,
    ),
    title,
    parts,
  );
}

/** The pattern as a matrix or as lines between tokens; null where the page has no patterns. */
function patternPicture(state, ways, note, onPick) {
  if (!patternSteps.length) return null;
  const none = element("p", {}, "No patterns were kept at or before this step.");
  const at = () => patternIndexFor(state.sequence, state.step);
  const shown = () => ({ ...patternOf(state.sequence, at() ?? 0, state.head, ways), rings: ringsOf(state) });
  const map = heatmap(shown(), { onPick });
  let lines = null;
  const place = element("div", {}, map.node);
  const views = choice(
    "Picture",
    [
      { value: "matrix", text: "matrix" },
      { value: "lines", text: "lines between tokens" },
    ],
    "matrix",
    (view) => {
      if (view === "lines") lines = tokenLines(shown());
      else lines = null;
      place.replaceChildren(lines?.node ?? map.node);
      show();
    },
  );
  const figures = exports({
    name: () => shown().name,
    svg: () => patternSvg(shown()),
    csv: () => patternRows(shown()),
    command: () => commandFor(state, shown().step, ways),
  });

  function show() {
    const index = at();
    place.hidden = index === null;
    none.hidden = index !== null;
    if (index === null) return;
    const pattern = shown();
    map.show(pattern);
    lines?.show(pattern);
    const isUnweighted = ways.valueWeighted && !hasValueNorms(state.sequence, index);
    note.textContent = isUnweighted
      ? "Not weighted by values: their norms are kept of the last step only."
      : `Weights as they were kept, to the nearest 1/255${pageData.run.steps > 0 ? `, of step ${pattern.step}` : ""}.${pattern.rings.length ? " Ringed: the pairs that the task knows." : ""}`;
  }

  return { node: element("div", {}, views.node, none, place, figures), show };
}

/** The pairs of the relation on show, or of all where the score is no relation. */
function ringsOf({ sequence, score }) {
  const pairs = relationsOf(sequence);
  const plain = score.replace(/^next /, "");
  const back = plain === score ? 0 : 1;
  const own = pairs.filter(([name]) => name === plain);
  return own.map(([, dependent, source]) => [dependent - back, source]).filter(([query, key]) => query > key);
}

/** What prints the same pattern, or why nothing does. */
function commandFor({ head, sequence }, step, ways) {
  const { checkpoints, steps, name } = pageData.run;
  if (Object.values(ways).some(Boolean)) return "No command changes weights in this way.";
  if (!checkpoints.includes(step)) return `The weights of step ${step} were not kept, so no command computes this pattern; patterns/step-${step} holds it.`;
  if (!isFirstProbe(sequence)) return `patterns/step-${step} holds this pattern; commands draw the first probe sequence, or a --prompt.`;
  const at = step === steps ? [] : ["--at", `step-${step}`];
  return command(name, ...at, "pattern", "--head", headName(head), "--png", `${headName(head)}.png`);
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
  const hasSteps = pageData.steps.length > 1;
  const row = (series) => {
    const score = scoreAt(series, index, head);
    const before = hasSteps ? scoreAt(series, 0, head) : null;
    if (!score) return null;
    const [value, low, high] = score;
    const cells = [
      [fixed(value, 3)],
      [interval(low, high), "wide-only"],
      [fixed(series.null, 3)],
      hasSteps ? [before ? fixed(before[0], 3) : "–", "wide-only"] : null,
      series.on === KIND.probe ? [shuffled(series, head, isLast)] : null,
      [fixed(series.ceiling, Number.isInteger(series.ceiling) ? 0 : 3)],
    ].filter(Boolean);
    const role = measureOf(series.name)?.is_role && series.on === KIND.probe && isLast && series.name === roleOf(head);
    return element(
      "tr",
      { class: role ? "here" : null },
      element("th", { scope: "row", title: measureOf(series.name)?.formula }, series.name),
      cells.map(([text, name]) => element("td", { class: name ?? null }, text)),
    );
  };
  const columns = (on) => [
    ["value"],
    [term("interval", "95 % interval"), "wide-only"],
    [term("evenly", "even")],
    ...(hasSteps ? [[term("step 0"), "wide-only"]] : []),
    ...(on === KIND.probe ? [[term("shuffled")]] : []),
    [term("ceiling")],
  ];
  const group = (on, text) => {
    const rows = scoreSeries
      .filter((series) => series.on === on)
      .map(row)
      .filter(Boolean);
    const header = [[text], ...columns(on)].map(([name, hidden]) => element("th", { scope: "col", class: hidden ?? null }, name));
    return rows.length ? [element("thead", {}, element("tr", {}, header)), element("tbody", {}, rows)] : null;
  };
  const role = roleOf(head);
  const meaning =
    role === ROLE.mixed
      ? "no score is half of the way from evenly spread attention to its ceiling"
      : `it ${measureOf(role)?.does}`;
  const groups = [
    [KIND.probe, "on the probe"],
    [KIND.task, `on the task, ${pageData.run.task}`],
  ];
  return element(
    "div",
    {},
    element("h3", {}, "Looks like"),
    element("p", {}, isLast ? `${role[0].toUpperCase()}${role.slice(1)}: ${meaning}.` : `At the end: ${role}.`),
    role === ROLE.mixed ? null : element("p", { class: "hint" }, measureOf(role)?.rate ?? ""),
    positionsHeld(head).map((sentence) => element("p", {}, sentence)),
    groups.map(([on, text]) => {
      const rows = group(on, text);
      return (
        rows &&
        element(
          "div",
          { class: "scroll whole", tabindex: "0", role: "region", "aria-label": `Scores ${text}` },
          element("table", { class: "dense" }, rows),
        )
      );
    }),
    exports({ name: `scores of ${headName(head)}`, csv: () => scoreRows(head, index), command: isLast ? command(pageData.run.name, "heads") : null }),
  );
}

function formulas() {
  const entry = ({ name, formula, rate }) => [element("dt", {}, name), element("dd", {}, formula, rate ? `. ${rate}` : "")];
  return element(
    "details",
    {},
    element("summary", {}, "How the scores are computed"),
    element("dl", {}, pageData.measures.flatMap(entry)),
  );
}

function scoreRows(head, index) {
  const rows = [["on", "score", "value", "low", "high", "even attention", "ceiling"]];
  for (const series of scoreSeries) {
    const found = scoreAt(series, index, head);
    if (found) rows.push([series.on, series.name, ...found, series.null, series.ceiling]);
  }
  return rows;
}
