// The run: what it was, and how loss and accuracy went.
import { curves } from "./curves.js";
import { element, fixed } from "./elements.js";
import { firstOfRole } from "./emergence.js";
import { accuracyPlot, lossPlot } from "./metrics_plots.js";
import { command } from "./picture.js";

/** Loss and accuracy over training, and what the run was told to do. */
export function runSection() {
  const { run, metrics, events } = pageData;
  const facts = [
    ["task", run.task],
    ["model", run.model],
    run.steps > 0 && [
      "trained",
      `${run.steps} steps in ${fixed(run.seconds, 1)} s, ${Math.round(run.tokens_per_second).toLocaleString("en")} tokens/s, on ${run.device}`,
    ],
    ["seed", run.seed],
    ["version", run.version],
    [
      "loss",
      `${fixed(run.loss, 4)} nats on scored positions (best possible: ${run.floor === null ? "unknown" : `${fixed(run.floor, 4)} nats`})`,
    ],
    ["accuracy", `${fixed(run.accuracy, 4)} on scored positions (guessing: ${fixed(run.chance, 4)}; best possible: ${run.best_accuracy === null ? "unknown" : fixed(run.best_accuracy, 4)})`],
    ...Object.entries(run.breakdown).map(([kind, { accuracy, count }]) => [kind, `${fixed(accuracy, 4)} right of ${count} questions`]),
  ];
  const marks = firstOfRole(events);
  const known = facts.filter(Boolean);
  const made = { command: command(run.name, "curves", "--png", "curves.png") };
  const loss = curves({ ...lossPlot(metrics, run.floor, marks), ...made });
  const accuracy = curves({ ...accuracyPlot(metrics, run, marks), ...made });
  return element(
    "section",
    { id: "run" },
    element("h2", {}, "The run"),
    element(
      "div",
      { class: "scroll whole" },
      element(
        "table",
        {},
        element(
          "tbody",
          {},
          known.map(([name, value]) =>
            element("tr", {}, element("th", { scope: "row" }, name), element("td", { class: "text" }, String(value))),
          ),
        ),
      ),
    ),
    metrics.length > 1 ? element("div", { class: "two" }, loss.node, accuracy.node) : null,
    leftOut(),
    run.config
      ? element(
          "details",
          {},
          element("summary", {}, "config.toml, every default filled in"),
          element("pre", {}, run.config),
        )
      : null,
  );
}

function leftOut() {
  const { left_out: missing } = pageData;
  return missing.length ? element("p", { class: "soft" }, `Left out of this page: ${missing.join("; ")}.`) : null;
}
