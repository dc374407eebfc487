// The heads over training: one slider for scores and patterns.
import { curves } from "./curves.js";
import { choice, element, fixed } from "./elements.js";
import { emergence } from "./emergence.js";
import { thumbnail } from "./heatmap.js";
import {
  headName,
  headsInLayer,
  measureOf,
  patternIndexFor,
  patternOf,
  patternSteps,
  roleOf,
  scoreAt,
  scoreSeries,
  seriesOf,
} from "./report_data.js";
import { scoreNames } from "./report_run.js";
import { seedsTable } from "./report_seeds.js";
import { EVENT, KIND, ROLE } from "./vocabulary.js";

const MILLISECONDS_A_STEP = 350;
/** More lines than this are a tangle. */
const MOST_LINES = 16;

/** `state.step` holds the step on show; `state.onStep` hears of a new one, `state.choose` of another head. */
export function trainingSection(state) {
  const { steps, events, heads } = pageData;
  const output = element("output", {});
  const slider = element("input", {
    type: "range",
    min: 0,
    max: steps.length - 1,
    step: 1,
    value: steps.length - 1,
    "aria-label": "Logged step",
    oninput: () => state.toStep(steps[Number(slider.value)]),
  });
  const small = element("div", {
    class: "head-grid",
    style: `grid-template-columns: repeat(${headsInLayer}, minmax(4.6rem, 10rem))`,
  });
  const place = element("div", {});
  const role = roleOf(state.head);
  const [firstTold] = Object.values(ROLE);
  const shown = { on: KIND.probe, name: role === ROLE.mixed ? firstTold : role };
  let plot = null;

  function paintCurves() {
    const series = seriesOf(shown.on, shown.name);
    if (!series) {
      place.replaceChildren(element("p", {}, `The sequences of this kind have no ${shown.name} score.`));
      plot = null;
      return;
    }
    const listed = [...heads.keys()].slice(0, MOST_LINES);
    plot = curves(
      {
        name: `${series.name} on ${series.on === KIND.probe ? "the probe" : "the task"}`,
        y: {
          name: series.name,
          low: 0,
          high: Math.max(series.ceiling, ...listed.map((head) => scoreAt(series, steps.length - 1, head)?.[0] ?? 0)),
        },
        lines: listed.map((head) => ({
          name: headName(head),
          points: steps
            .map((step, at) => [step, scoreAt(series, at, head)?.[0]])
            .filter(([, value]) => value !== undefined),
          band: steps
            .map((step, at) => [step, ...(scoreAt(series, at, head) ?? []).slice(1)])
            .filter((row) => row.length === 3),
        })),
        levels: [
          { name: "evenly spread attention", value: series.null },
          { name: "ceiling", value: series.ceiling },
        ],
        bands: [untrained(series)],
        marks: events
          .filter(({ role, event }) => role === series.name && event === EVENT.emerged)
          .map(({ step, head }) => ({ step, name: `${head} emerged` })),
      },
      state.toStep,
    );
    const { formula, does } = measureOf(series.name) ?? {};
    const more =
      heads.length > MOST_LINES
        ? ` The first ${MOST_LINES} of ${heads.length} heads are drawn; the table of heads has all.`
        : "";
    place.replaceChildren(
      plot.node,
      element("p", { class: "hint" }, `${series.name}: ${formula}. A head with a high score ${does}.${more}`),
    );
    plot.cursor(state.step);
  }

  function paintSmall() {
    if (!patternSteps.length) return;
    const at = patternIndexFor(state.step);
    const series = seriesOf(KIND.probe, shown.name);
    const index = steps.indexOf(state.step);
    small.replaceChildren(
      ...[...heads.keys()].map((head) => {
        const score = series && scoreAt(series, index, head);
        const text = score ? `${shown.name} ${fixed(score[0], 2)}` : "";
        return element(
          "button",
          {
            type: "button",
            "aria-pressed": String(head === state.head),
            title: `Show ${headName(head)}`,
            onclick: () => state.choose(head),
          },
          element("b", {}, headName(head)),
          element("small", {}, text),
          thumbnail(patternOf(state.sequence, at, head)),
        );
      }),
    );
  }

  state.onStep.push(() => {
    const index = steps.indexOf(state.step);
    slider.value = index;
    slider.setAttribute("aria-valuetext", `step ${state.step}`);
    const kept = patternSteps.length ? `, patterns of step ${patternSteps[patternIndexFor(state.step)]}` : "";
    output.textContent = `step ${state.step} of ${steps.at(-1)}${kept}`;
    plot?.cursor(state.step);
    paintSmall();
  });
  state.onHead.push(paintSmall);

  const names = scoreNames.map((name) => ({ value: name, text: name }));
  const kinds = [...new Set(scoreSeries.map(({ on }) => on))].map((on) => ({
    value: on,
    text: on === KIND.probe ? "probe" : `task ${pageData.run.task}`,
  }));
  const again = () => {
    paintCurves();
    paintSmall();
  };
  paintCurves();
  return element(
    "section",
    { id: "training" },
    element("h2", {}, "The heads over training"),
    element(
      "p",
      {},
      "Scores are read on the probe: random tokens, then the same block again, of random length and start, so that no position gives the answer away. The same scores on the run's own task stand beside it: a task can make a head look like what it is not.",
    ),
    choice("Score", names, shown.name, (name) => {
      shown.name = name;
      again();
    }).node,
    choice("Sequences", kinds, shown.on, (on) => {
      shown.on = on;
      again();
    }).node,
    place,
    element("div", { class: "slider" }, playButton(state), slider, output),
    element("p", { class: "hint" }, `Every head's pattern at this step, a row a layer; a click shows it below.`),
    small,
    emergence(events),
    seedsTable(),
  );
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

/** Runs through the steps; not offered to readers who want no motion. */
function playButton(state) {
  const { steps } = pageData;
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.textContent = "play";
  };
  const button = element(
    "button",
    { type: "button", class: "moves", onclick: () => (timer ? stop() : play()) },
    "play",
  );
  function play() {
    button.textContent = "stop";
    let at = steps.indexOf(state.step);
    if (at === steps.length - 1) at = -1;
    timer = setInterval(() => {
      at += 1;
      state.toStep(steps[at]);
      if (at === steps.length - 1) stop();
    }, MILLISECONDS_A_STEP);
  }
  return button;
}
