// The heads over training: scores as curves, patterns of all heads, and what happened when.
import { curves } from "./curves.js";
import { choice, element, inSightFirst } from "./elements.js";
import { emergence } from "./emergence.js";
import { term } from "./glossary.js";
import { headGrid } from "./head_grid.js";
import { command } from "./picture.js";
import { headName, measureOf, scoreAt, scoreNames, scoreSeries, seriesOf } from "./report_data.js";
import { seedsTable } from "./report_seeds.js";
import { stepSlider } from "./step_slider.js";
import { EVENT, KIND } from "./vocabulary.js";

/** More lines than this are a tangle. */
const MOST_LINES = 16;

/** `state.score` and `state.kind` say which score is drawn. */
export function trainingSection(state) {
  const { steps, events } = pageData;
  if (steps.length < 2) return null;
  const place = element("div", {});
  let plot = null;

  function paint() {
    const series = seriesOf(state.kind, state.score);
    if (!series) {
      place.replaceChildren(element("p", {}, `No sequences have a ${state.score} score.`));
      plot = null;
      return;
    }
    plot = curves(plotOf(series), state.toStep);
    const { formula, does } = measureOf(series.name) ?? {};
    place.replaceChildren(
      plot.node,
      element("p", { class: "hint" }, `${series.name}: ${formula}. A head with a high score ${does}.${moreLines()}`),
    );
    plot.cursor(state.step);
  }

  state.onScore.push(inSightFirst(place, paint));
  state.onStep.push(() => plot?.cursor(state.step));
  return element(
    "section",
    { id: "training" },
    element("h2", {}, "Over training"),
    scoreChoice(state),
    element(
      "div",
      { class: "two" },
      element("div", {}, place, stepSlider(state), emergence(events)),
      element(
        "div",
        {},
        element("p", { class: "hint" }, "Every head's ", term("pattern"), " at this step, layer by layer. A click shows it below."),
        headGrid(state),
      ),
    ),
    seedsTable(),
  );
}

/** Which score is shown, and on which sequences. */
export function scoreChoice(state) {
  const names = scoreNames.map((name) => ({ value: name, text: name, title: measureOf(name)?.formula }));
  const kinds = [...new Set(scoreSeries.map(({ on }) => on))].map((on) => ({
    value: on,
    text: on === KIND.probe ? "probe" : `task ${pageData.run.task}`,
  }));
  const score = choice("Score", names, state.score, (name) => state.toScore(name));
  const kind = choice("Sequences", kinds, state.kind, (on) => state.toScore(state.score, on));
  state.onScore.push(() => {
    score.mark(state.score);
    kind.mark(state.kind);
  });
  return element(
    "div",
    { class: "controls" },
    score.node,
    element("span", { class: "soft" }, "on the"),
    kind.node,
  );
}

function plotOf(series) {
  const { steps, events, run, heads } = pageData;
  const listed = listedHeads(series);
  const of = (head, part) =>
    steps.map((step, at) => [step, ...part(scoreAt(series, at, head) ?? [])]).filter((row) => row.length > 1);
  const highest = listed.map((head) => scoreAt(series, steps.length - 1, head)?.[0] ?? 0);
  const emerged = events.filter(({ role, event }) => role === series.name && event === EVENT.emerged);
  return {
    name: `${series.name} on ${series.on === KIND.probe ? "the probe" : "the task"}`,
    y: { name: `${series.name} score`, low: 0, high: Math.max(series.ceiling, ...highest) },
    lines: listed.map((head) => ({
      name: headName(head),
      points: of(head, (found) => found.slice(0, 1)),
      band: of(head, (found) => found.slice(1)),
    })),
    levels: [
      { name: "evenly spread attention", value: series.null },
      { name: "ceiling", value: series.ceiling },
    ],
    bands: [untrained(series)],
    marks: emerged
      .filter(({ head }) => heads.length <= MOST_LINES || listed.some((at) => headName(at) === head))
      .map(({ step, head }) => ({ step, name: `${head} emerged` })),
    command: command(run.name, "scores", "--csv", "scores.csv"),
  };
}

/** All heads; of many those that end highest. */
function listedHeads(series) {
  const all = [...pageData.heads.keys()];
  if (all.length <= MOST_LINES) return all;
  const last = pageData.steps.length - 1;
  const value = (head) => scoreAt(series, last, head)?.[0] ?? -1;
  return all.sort((a, b) => value(b) - value(a)).slice(0, MOST_LINES);
}

function moreLines() {
  const count = pageData.heads.length;
  return count > MOST_LINES ? ` The ${MOST_LINES} of ${count} heads that end highest are drawn.` : "";
}

/** What all heads scored before training, from the lowest end of an interval to the highest. */
function untrained(series) {
  const found = [...pageData.heads.keys()].map((head) => scoreAt(series, 0, head)).filter(Boolean);
  return {
    name: "untrained heads",
    low: Math.min(...found.map(([, low]) => low)),
    high: Math.max(...found.map(([, , high]) => high)),
  };
}
