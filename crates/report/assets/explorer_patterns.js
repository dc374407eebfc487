// Where heads look in the answered question: asked for a layer at a time, when somebody sees the layer.
import { bytes } from "./elements.js";
import { ask } from "./explorer_asks.js";

/** `onLayer(layer)` hears that the patterns of a layer are there, `fail` what went wrong. */
export function patternStore(heads, attends, onLayer, fail) {
  let question = null;
  let tokens = [];
  let found = new Map();
  let waiting = [];
  let asking = null;

  const ofLayer = (layer) => heads.map(([name]) => name).filter((name) => name.startsWith(`L${layer}H`));

  /** One layer after the other: other questions find a free connection. */
  async function next() {
    if (asking || !waiting.length) return;
    const layer = waiting.shift();
    const own = new AbortController();
    asking = own;
    try {
      const patterns = await ask("/patterns", { question, heads: ofLayer(layer) }, own.signal);
      if (asking !== own) return;
      for (const [name, weights] of patterns) found.set(name, bytes(weights));
      asking = null;
      onLayer(layer);
    } catch (error) {
      if (asking !== own) return;
      asking = null;
      fail(error);
    }
    next();
  }

  return {
    /** Forgets everything: what comes is about another question. */
    renew(nextQuestion, nextTokens) {
      asking?.abort();
      [question, tokens, found, waiting, asking] = [structuredClone(nextQuestion), nextTokens, new Map(), [], null];
    },
    /** Asks for a layer that is not there yet; the one that was wanted last comes first. */
    want(layer) {
      if (!question || found.has(ofLayer(layer)[0])) return;
      waiting = [layer, ...waiting.filter((other) => other !== layer)];
      next();
    },
    has: (name) => found.has(name),
    /** A head's pattern as heatmaps take it. */
    of(name) {
      const weights = found.get(name);
      return { name, tokens, attends, weight: (query, key) => weights[query * tokens.length + key] / 255 };
    },
  };
}
