// In the report: the circuits, one for each kind of pairs.
import { circuitView } from "./circuit.js";
import { choice, element } from "./elements.js";
import { term } from "./glossary.js";

/** `state.pairs` says which circuit is shown. */
export function circuitSection(state) {
  const { edges: circuits } = pageData;
  if (!circuits.length) return null;
  const place = element("div", {});
  let view = null;

  function paint() {
    const circuit = circuits.find(({ pairs }) => pairs === state.pairs) ?? circuits[0];
    view = circuitView(circuit, { run: pageData.run.name, onHead, onStep: state.toStep });
    place.replaceChildren(view.node);
    view.cursor(state.step);
  }

  const onHead = (name) => state.lookAt(pageData.heads.findIndex(([known]) => known === name));

  const options = circuits.map(({ pairs, replaced }) => ({ value: pairs, text: `${pairs}: ${replaced}` }));
  const kinds = choice("Pairs of prompts", options, state.pairs, state.toPairs);
  state.onPairs.push(() => {
    kinds.mark(state.pairs);
    paint();
  });
  state.onStep.push(() => view?.cursor(state.step));
  return element(
    "section",
    { id: "circuit" },
    element("h2", {}, "Through which edges"),
    element(
      "p",
      {},
      "An ",
      term("edge"),
      " leads from a part that writes into the residual stream to a part that reads it. A ",
      term("circuit"),
      " is the few edges that carry a behaviour between two prompts that differ in one token:",
    ),
    kinds.node,
    place,
  );
}
