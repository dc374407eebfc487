// The slider over training: logged steps, with a tick where patterns were kept and a mark where something happened.
import { element } from "./elements.js";
import { patternIndexFor, patternStep, patternSteps } from "./report_data.js";
import { EVENT } from "./vocabulary.js";

const MILLISECONDS_A_STEP = 350;

/** A slider for `state.step`; every slider of a page shows the same step. */
export function stepSlider(state) {
  const { steps } = pageData;
  if (steps.length < 2) return null;
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
  function paint() {
    slider.value = steps.indexOf(state.step);
    const at = patternIndexFor(state.sequence, state.step);
    const kept = at === null ? null : patternStep(state.sequence, at);
    const patterns = kept === null || kept === state.step ? "" : `, patterns of step ${kept}`;
    slider.setAttribute("aria-valuetext", `step ${state.step}`);
    output.textContent = `step ${state.step} of ${steps.at(-1)}${patterns}`;
  }
  state.onStep.push(paint);
  state.onSequence.push(paint);
  paint();
  return element(
    "div",
    { class: "slider" },
    playButton(state),
    element("div", { class: "track" }, slider, ticks()),
    output,
  );
}

/** Where the thumb would stand: a tick for kept patterns, a mark for events. */
function ticks() {
  const { steps, events } = pageData;
  const emerged = events.filter(({ event }) => event === EVENT.emerged || event === EVENT.rangeEmerged);
  const tick = (step, name, title) => {
    const at = steps.indexOf(step);
    if (at < 0) return null;
    const share = at / (steps.length - 1);
    return element("i", { class: name, title, style: `left: calc(8px + ${share} * (100% - 16px))` });
  };
  const happened = new Map();
  for (const { step, head, role } of emerged) happened.set(step, [...(happened.get(step) ?? []), `${head} ${role}`]);
  return element(
    "div",
    { class: "ticks", title: "Ticks: steps whose patterns were kept. Triangles: a head took on a role." },
    patternSteps.map((step) => tick(step, "kept", `patterns of step ${step}`)),
    [...happened].map(([step, heads]) => tick(step, "happened", `step ${step}: ${heads.join(", ")}`)),
  );
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
