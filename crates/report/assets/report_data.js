// The report's data in the form in which it is drawn.
import { bytes, floats } from "./elements.js";
import { mayAttend } from "./may_attend.js";
import { KIND, ROLE } from "./vocabulary.js";
import { sourceOf } from "./walk_source.js";

export const headName = (at) => pageData.heads[at][0];
export const roleOf = (at) => pageData.heads[at][1];
export const layerOf = (at) => Number(/^L(\d+)H/.exec(headName(at))[1]);

/** The number of heads in a layer. */
export const headsInLayer = pageData.heads.filter((_, at) => layerOf(at) === 0).length;

/** Every score series, its numbers read. */
export const scoreSeries = pageData.scores.map((series) => ({ ...series, values: floats(series.values) }));

/** `[value, low, high]` of a head at the `index`-th logged step, or null. */
export function scoreAt(series, index, head) {
  const at = 3 * (index * pageData.heads.length + head);
  const found = series.values.subarray(at, at + 3);
  return found.length < 3 || Number.isNaN(found[0]) ? null : [...found];
}

/** Every score that heads are measured by. */
export const scoreNames = [...new Set(scoreSeries.map(({ name }) => name))];

export const seriesOf = (on, name) => scoreSeries.find((series) => series.on === on && series.name === name);

/** The formula and meaning of a score. */
export const measureOf = (name) => pageData.measures.find((measure) => measure.name === name);

const patternSets = pageData.patterns.map((set) => ({
  ...set,
  weights: set.weights.map(bytes),
  value_norms: set.value_norms === null ? null : floats(set.value_norms),
}));

/** Which sequences there are patterns of: `{value, text}`. */
export const sequences = patternSets.map(({ on }, at) => {
  const same = patternSets.filter((set) => set.on === on);
  const number = same.length > 1 ? ` ${same.indexOf(patternSets[at]) + 1}` : "";
  return { value: at, text: on === KIND.probe ? `probe${number}` : `task ${pageData.run.task}${number}` };
});

/** The steps at which patterns of the first sequence were kept; those of others are among them. */
export const patternSteps = patternSets[0]?.steps ?? [];

/** The first sequence of the task, or else the first of all. */
export const firstOfTask = Math.max(
  patternSets.findIndex(({ on }) => on === KIND.task),
  0,
);

/** The gold relations of a sequence: `[name, dependent, source]`. */
export const relationsOf = (sequence) => patternSets[sequence]?.relations ?? [];

/** Whether a sequence is the one that `inspect pattern` draws without a prompt. */
export const isFirstProbe = (sequence) => patternSets[sequence]?.on === KIND.probe && sequence === 0;

/**
 * The pattern of a head on a sequence at one of the kept steps. `ways` changes what is shown: `hideFirst` takes the first
 * token's weight out, `renormalise` makes each row sum to 1 again, `valueWeighted` scales each weight by the norm of the
 * value it brings, which is known at the last step.
 */
export function patternOf(sequence, stepIndex, head, ways = {}) {
  const { tokens, weights, value_norms: norms, steps } = patternSets[sequence];
  const n = tokens.length;
  const start = (head * n * (n + 1)) / 2;
  const bytesHere = weights[stepIndex];
  const attends = mayAttend(pageData.run.window);
  const raw = (query, key) => (attends(query, key) ? bytesHere[start + (query * (query + 1)) / 2 + key] / 255 : 0);
  const name = `${headName(head)} ${roleOf(head)}, step ${steps[stepIndex]}, ${sequences[sequence].text}`;
  const pattern = { name, tokens, weight: raw, attends, step: steps[stepIndex] };
  const weighted = ways.valueWeighted && hasValueNorms(sequence, stepIndex);
  if (!ways.hideFirst && !ways.renormalise && !weighted) return pattern;
  const kept = (query, key) =>
    ways.hideFirst && key === 0 ? 0 : raw(query, key) * (weighted ? norms[head * n + key] : 1);
  // A weighted row has no scale of its own: it always sums to what the row without values sums to.
  const factors = Float64Array.from({ length: n }, (_, query) => {
    let [before, after] = [0, 0];
    for (let key = 0; key <= query; key++) {
      after += kept(query, key);
      before += ways.hideFirst && key === 0 ? 0 : raw(query, key);
    }
    if (after === 0) return 0;
    return ways.renormalise ? 1 / after : before / after;
  });
  return { ...pattern, weight: (query, key) => kept(query, key) * factors[query] };
}

/** Whether the norms of the values are known: those of the last step are. */
export function hasValueNorms(sequence, stepIndex) {
  const { value_norms: norms, steps } = patternSets[sequence];
  return norms !== null && stepIndex === steps.length - 1;
}

/** The last step at or before a logged one at which patterns of a sequence were kept, as an index; null if none was. */
export function patternIndexFor(sequence, step) {
  const at = (patternSets[sequence]?.steps ?? []).findLastIndex((kept) => kept <= step);
  return at < 0 ? null : at;
}

/** The step of an index of patterns. */
export const patternStep = (sequence, index) => patternSets[sequence].steps[index];

/** The score that a head is looked at by: that of its role, or the first that is told. */
export function scoreFor(head) {
  const [firstTold] = Object.values(ROLE);
  return roleOf(head) === ROLE.mixed ? firstTold : roleOf(head);
}

/** The heads whose walk is on the page: indices into the list of heads. */
export const walkedHeads = (pageData.walk?.layers ?? []).flatMap(({ layer, heads }) =>
  heads.map(({ head }) => layer * headsInLayer + head),
);

const walkSources = new Map();

/** A head's numbers, in the form in which walk_stages.js takes them; read once. */
export function walkSource(head) {
  if (!walkSources.has(head))
    walkSources.set(head, sourceOf(pageData.walk, layerOf(head), head % headsInLayer, pageData.run.window));
  return walkSources.get(head);
}

/** The tokens of a sequence, and the weights of a head on it at the last kept step; null where there are no patterns. */
export function sentenceOf(sequence) {
  const set = patternSets[sequence];
  if (!set) return null;
  return { tokens: set.tokens, weightsOf: (head) => patternOf(sequence, set.steps.length - 1, head).weight };
}
