// A run while it trains: asks the program every second what is new, until the report is there.
import { curves } from "./curves.js";
import { element, fixed } from "./elements.js";
import { emergence, firstOfRole } from "./emergence.js";
import { ask } from "./explorer_asks.js";
import { liveHeads } from "./live_heads.js";
import { liveScores } from "./live_scores.js";
import { accuracyPlot, lossPlot } from "./metrics_plots.js";
import { themeButton } from "./theme.js";

const MILLISECONDS = 1000;
const metrics = [];
/** The steps of what is here already. */
const known = { metrics: null, scores: null, patterns: null };

const said = element("p", { class: "error", role: "alert" });
const standing = element("p", { class: "finding" }, "Nothing is measured yet.");
const progress = element("progress", { max: pageData.steps, value: 0, "aria-label": "Updates done" });
const plots = [
  curves(ofWholeRun(lossPlot([], pageData.floor, []))),
  curves(ofWholeRun(accuracyPlot([], pageData, []))),
];
const heads = liveHeads(pageData);
const scores = liveScores(pageData);
const speed = element("p", { class: "readout" }, "");
const happened = element("div", {}, element("p", {}, "No head looks like anything yet."));

/** The axis ends where the run will end, so that a line shows how far it is. */
function ofWholeRun(plot) {
  return { ...plot, last: pageData.steps };
}

/** How fast the run goes, and how long the rest takes at that speed. */
function pace(step, tokensPerSecond) {
  if (!tokensPerSecond) return "";
  const seconds = ((pageData.steps - step) * pageData.tokens_per_step) / tokensPerSecond;
  const left = step < pageData.steps ? `, about ${duration(seconds)} left at this speed` : "";
  return `${Math.round(tokensPerSecond).toLocaleString("en")} tokens/s${left}`;
}

function duration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

function show(news) {
  if (news.metrics.length) {
    metrics.push(...news.metrics);
    const { step, validation, accuracy } = metrics.at(-1);
    known.metrics = step;
    progress.value = step;
    const floor = pageData.floor === null ? "" : ` (best possible ${fixed(pageData.floor, 4)})`;
    standing.textContent = `Step ${step} of ${pageData.steps}: validation loss ${fixed(validation, 4)} nats${floor}, accuracy ${fixed(accuracy, 3)} (guessing ${fixed(pageData.chance, 3)}).`;
    const marks = firstOfRole(news.events);
    plots[0].show(ofWholeRun(lossPlot(metrics, pageData.floor, marks)));
    plots[1].show(ofWholeRun(accuracyPlot(metrics, pageData, marks)));
    speed.textContent = pace(step, news.tokens_per_second);
  }
  if (news.scores.length) {
    known.scores = news.scores.at(-1).step;
    scores.add(news.scores);
  }
  if (news.events.length) happened.replaceChildren(emergence(news.events));
  if (news.patterns) known.patterns = news.patterns.step;
  heads.show(news.heads, news.patterns);
}

/** The report is taken over now: the program ends, and with it whatever it serves. */
async function end() {
  const report = await (await fetch("/report.html")).blob();
  const link = element("a", { href: URL.createObjectURL(report), target: "_blank" }, "its report");
  standing.append(" Training has ended; here is ", link, `, kept as ${pageData.report}.`);
}

async function follow() {
  try {
    const news = await ask("/news", known);
    show(news);
    if (news.finished) await end();
    else setTimeout(follow, MILLISECONDS);
  } catch (error) {
    said.textContent =
      error instanceof TypeError
        ? `The program has ended and answers no more. A run that came to its end has its report in ${pageData.report}.`
        : error.message;
  }
}

const section = (id, title, ...children) => element("section", { id }, element("h2", {}, title), ...children);

document.getElementById("page").classList.add("wide");
document.getElementById("page").append(
  element("header", {}, element("h1", {}, `${pageData.name}, training on ${pageData.task}`), themeButton()),
  standing,
  progress,
  speed,
  said,
  section("curves", "Loss and accuracy", element("div", { class: "two" }, plots.map(({ node }) => node))),
  section("heads", "The heads, as they form", heads.node),
  section("scores", "What the heads look like, step by step", scores.node),
  section("events", "What happened when", happened),
);
follow();
