// What the report has on show, and who hears when that changes.
import { addressOf, readAddress } from "./address.js";
import { afterFrame } from "./elements.js";
import { firstOfTask, headName, patternSteps, scoreFor, sequences, seriesOf } from "./report_data.js";
import { KIND } from "./vocabulary.js";

const { steps, heads, relations, edges: circuits } = pageData;

/** The head that the finding speaks of, or the first. */
export const bestHead = Math.max(
  heads.findIndex(([name]) => name === pageData.headline),
  0,
);

const lastStep = steps.at(-1) ?? patternSteps.at(-1) ?? 0;

/** What a page begins with: where the task knows what depends on what, the clearest head on the clearest relation. */
function beginning() {
  const clearest = clearestRelation(bestHead);
  return {
    head: bestHead,
    step: lastStep,
    sequence: relations.length ? firstOfTask : 0,
    score: clearest ?? scoreFor(bestHead),
    kind: clearest ? KIND.task : KIND.probe,
    pairs: circuits[0]?.pairs ?? null,
  };
}

/** The relation that a head follows furthest above its nulls. */
export function clearestRelation(head) {
  const above = ({ uniform, heads: seen }) => (seen[head] ? aboveNulls(seen[head], uniform) : -Infinity);
  const [first] = [...relations].sort((a, b) => above(b) - above(a));
  return first?.name ?? null;
}

/** Whether a head gives a relation's source at least half of its attention, surely above every null. */
export function isFollowed(seen, uniform) {
  return seen.value >= 0.5 && isSurelyAbove(seen, uniform);
}

/** Whether the lower end of a relation's interval stands above every null. */
export function isSurelyAbove(seen, uniform) {
  return seen.low > highestNull(seen, uniform);
}

/** How far a relation's score stands above the highest of its nulls. */
export function aboveNulls(seen, uniform) {
  return seen.value - highestNull(seen, uniform);
}

/** The highest of a relation's nulls. */
export function highestNull({ distance, shuffled }, uniform) {
  return Math.max(uniform, distance ?? 0, shuffled ?? 0);
}

/**
 * The state. Sections push themselves onto the lists of listeners; `choose`, `lookAt`, `toStep`, `toSequence`, `toScore`,
 * `toRelation` and `toPairs` change what is on show. The address follows.
 */
export function reportState() {
  const state = {
    ...beginning(),
    onHead: [],
    onStep: [],
    onSequence: [],
    onScore: [],
    onPairs: [],
    choose: (head) => change({ head }, true),
    toStep: (step) => change({ step }, false),
    toSequence: (sequence) => change({ sequence }, true),
    /** A score that the kind of sequences does not have is shown on the kind that has it. */
    toScore: (score, kind = state.kind) => change({ score, kind: kindWith(score, kind) }, true),
    /** A head, looked at by how it follows a relation of the task. */
    toRelation: (head, score) => change({ head, score, kind: KIND.task }, true),
    toPairs: (pairs) => change({ pairs }, true),
    /** Goes to the section on one head at once; the head is drawn a frame later, so that nobody waits for both. */
    lookAt: (head) => {
      document.getElementById("head").scrollIntoView();
      afterFrame(() => change({ head, at: "head" }, true));
    },
    /** The section that the reader went to. */
    at: null,
    goTo: (id) => {
      state.at = id;
      write(true);
    },
  };
  const write = addressOf(
    () => ({
      head: headName(state.head),
      step: state.step,
      score: state.score,
      on: state.kind,
      sequence: state.sequence,
      ...(state.pairs ? { pairs: state.pairs } : {}),
      ...(state.at ? { at: state.at } : {}),
    }),
    (found) => {
      Object.assign(state, read(found));
      tell(["head", "step", "sequence", "score", "pairs"]);
      show(found.at);
    },
  );

  function change(values, isNew) {
    const changed = Object.keys(values).filter((name) => state[name] !== values[name]);
    Object.assign(state, values);
    tell(changed);
    if (changed.length) write(isNew);
  }

  function tell(names) {
    const lists = {
      head: state.onHead,
      step: state.onStep,
      sequence: state.onSequence,
      score: state.onScore,
      pairs: state.onPairs,
    };
    const listeners = names.flatMap((name) => lists[name === "kind" ? "score" : name] ?? []);
    for (const listener of new Set(listeners)) listener();
  }

  /** Draws everything as the address says, and goes where it says. */
  state.begin = () => {
    const found = readAddress();
    Object.assign(state, read(found));
    tell(["head", "step", "sequence", "score", "pairs"]);
    show(found.at);
  };
  return state;
}

function kindWith(score, kind) {
  if (seriesOf(kind, score)) return kind;
  return Object.values(KIND).find((other) => seriesOf(other, score)) ?? kind;
}

/** The part of an address that makes sense here; the rest is what a page begins with. */
function read({ head, step, score, on, sequence, pairs }) {
  const begun = beginning();
  const known = (value, all) => (all.includes(value) ? value : null);
  const headAt = heads.findIndex(([name]) => name === head);
  const kind = known(on, Object.values(KIND)) ?? begun.kind;
  const named = Object.values(KIND).some((any) => seriesOf(any, score)) ? score : begun.score;
  return {
    head: headAt < 0 ? begun.head : headAt,
    step: known(Number(step), steps) ?? begun.step,
    sequence: known(Number(sequence), [...sequences.keys()]) ?? begun.sequence,
    score: named,
    kind: kindWith(named, kind),
    pairs: known(pairs, circuits.map((circuit) => circuit.pairs)) ?? begun.pairs,
  };
}

/** Figures take their height in the first frame, which moves what stands below them: the section is gone to again then. */
function show(id) {
  const section = id && document.getElementById(id);
  if (!section) return;
  section.scrollIntoView();
  requestAnimationFrame(() => requestAnimationFrame(() => section.scrollIntoView()));
}
