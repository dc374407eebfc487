// The run: what it was, and what came out.
import { curves } from "./curves.js";
import { element, fixed } from "./elements.js";
import { firstOfRole } from "./emergence.js";
import { heatmap } from "./heatmap.js";
import { accuracyPlot, lossPlot } from "./metrics_plots.js";
import { headName, measureOf, patternOf, patternSteps, roleOf, scoreAt, scoreSeries, seriesOf } from "./report_data.js";
import { themeButton } from "./theme.js";
import { EVENT, KIND } from "./vocabulary.js";

/** The sentences that the report begins with, beside the head they speak of. */
export function findingSection() {
  const { run, finding, metrics, events } = pageData;
  const header = element(
    "header",
    {},
    element(
      "div",
      {},
      element("h1", {}, `${run.name}: what its heads learned`),
      element(
        "p",
        { class: "soft" },
        `${run.task}. ${run.model}. Seed ${run.seed}.`,
        lesson(),
      ),
    ),
    themeButton(),
  );
  const [first, ...more] = finding.map((sentence, i) => element("p", { class: i === 0 ? "finding" : null }, sentence));
  const best = bestHead;
  const series = seriesOf(KIND.probe, roleOf(best));
  const role = roleOf(best);
  const words = element("div", {}, more);
  const picture = element("div", { class: "two" }, words);
  if (series && metrics.length) {
    const points = pageData.steps
      .map((step, at) => [step, scoreAt(series, at, best)?.[0]])
      .filter(([, value]) => value !== undefined);
    const band = pageData.steps
      .map((step, at) => [step, ...(scoreAt(series, at, best) ?? []).slice(1)])
      .filter((row) => row.length === 3);
    const plot = curves({
      name: `${headName(best)}'s ${role} score, and the model's accuracy`,
      y: { name: "shares", low: 0, high: 1 },
      lines: [
        { name: `${role} score of ${headName(best)} with its 95 % interval`, points, band },
        { name: "accuracy", points: metrics.map(({ step, accuracy }) => [step, accuracy]) },
      ],
      levels: [{ name: `${role} score of evenly spread attention`, value: series.null }],
      marks: events
        .filter(({ head, event }) => head === headName(best) && event === EVENT.emerged)
        .map(({ step, head }) => ({ step, name: `${head} looks like ${role}` })),
    });
    words.append(plot.node, element("p", { class: "hint" }, `${role} score: ${measureOf(role)?.formula}`));
  }
  if (patternSteps.length) {
    const pattern = patternOf(0, patternSteps.length - 1, best);
    const map = heatmap({ ...pattern, name: `${pattern.name}, on a probe sequence` });
    picture.append(
      element(
        "figure",
        {},
        element(
          "figcaption",
          {},
          `${headName(best)} at step ${patternSteps.at(-1)} on a probe sequence: a block of random tokens that comes again. Rows are queries, columns are keys.`,
        ),
        map.node,
      ),
    );
  }
  return element("section", {}, header, first, picture, leftOut());
}

/** A link to the page that is written beside the report. Opened from the live page, the report is a blob and has no neighbours. */
function lesson() {
  return location.protocol === "blob:" ? null : [" New to attention? ", element("a", { href: "learn.html" }, "How it works")];
}

/** The head that the finding speaks of, or the first. */
export const bestHead = Math.max(
  pageData.heads.findIndex(([name]) => name === pageData.headline),
  0,
);

function leftOut() {
  const { left_out: missing } = pageData;
  return missing.length ? element("p", { class: "soft" }, `Left out of this page: ${missing.join("; ")}.`) : null;
}

/** Loss and accuracy over training, and what the run was told to do. */
export function runSection() {
  const { run, metrics, events } = pageData;
  const facts = [
    ["task", run.task],
    ["model", run.model],
    [
      "trained",
      `${run.steps} steps in ${fixed(run.seconds, 1)} s, ${Math.round(run.tokens_per_second).toLocaleString("en")} tokens/s, on ${run.device}`,
    ],
    ["seed", run.seed],
    ["version", run.version],
    [
      "loss",
      `${fixed(run.loss, 4)} nats on scored positions (best possible: ${run.floor === null ? "unknown" : `${fixed(run.floor, 4)} nats`})`,
    ],
    ["accuracy", `${fixed(run.accuracy, 4)} on scored positions (guessing: ${fixed(run.chance, 4)})`],
    ...Object.entries(run.breakdown).map(([kind, { accuracy, count }]) => [kind, `${fixed(accuracy, 4)} of ${count}`]),
  ];
  const marks = firstOfRole(events);
  const loss = curves(lossPlot(metrics, run.floor, marks));
  const accuracy = curves(accuracyPlot(metrics, run.chance, marks));
  return element(
    "section",
    { id: "run" },
    element("h2", {}, "The run"),
    element(
      "div",
      { class: "scroll" },
      element(
        "table",
        {},
        element(
          "tbody",
          {},
          facts.map(([name, value]) =>
            element("tr", {}, element("th", { scope: "row" }, name), element("td", { class: "text" }, String(value))),
          ),
        ),
      ),
    ),
    metrics.length ? element("div", { class: "two" }, loss.node, accuracy.node) : null,
    element(
      "details",
      {},
      element("summary", {}, "config.toml, every default filled in"),
      element("pre", {}, run.config),
    ),
  );
}

/** Every score that heads are measured by. */
export const scoreNames = [...new Set(scoreSeries.map(({ name }) => name))];
