// From a walk as it is written to the matrices that are drawn.
import { floats } from "./elements.js";
import { table } from "./matrix.js";
import { mayAttend } from "./may_attend.js";

/** A head's numbers of `data` (WalkData), in the form in which walk_stages.js takes them. */
export function sourceOf(data, layerAt, headAt, window) {
  const n = data.tokens.length;
  const layer = data.layers.find((found) => found.layer === layerAt);
  const own = layer.heads.find((found) => found.head === headAt);
  const wide = (numbers) => table(n, data.d_model, floats(numbers));
  const narrow = (numbers) => table(n, data.d_head, floats(numbers));
  const square = (numbers) => table(n, n, floats(numbers));
  const [wQ, wK, wV] = own.w_qkv.map((numbers) => table(data.d_model, data.d_head, floats(numbers)));
  const [bQ, bK, bV] = own.b_qkv.map((numbers) => (numbers === null ? null : floats(numbers)));
  const [q, k, v] = own.qkv.map(narrow);
  const [stream, added] = [wide(layer.stream), wide(layer.added)];
  const before = data.written.findIndex(([name]) => name === `attention ${layer.layer}`);
  return {
    tokens: data.tokens,
    directions: data.directions,
    layer: layer.layer,
    stream,
    streamParts:
      data.replaces_stream && layer.layer > 0
        ? null
        : data.written.slice(0, before).map(([name, numbers]) => ({ name, table: wide(numbers) })),
    norm: layer.norm && {
      kind: layer.norm.kind,
      gain: floats(layer.norm.gain),
      bias: layer.norm.bias === null ? null : floats(layer.norm.bias),
      epsilon: layer.norm.epsilon,
      output: wide(layer.norm.output),
    },
    q,
    k,
    v,
    weights: { q: wQ, k: wK, v: wV, o: table(data.d_head, data.d_model, floats(own.w_o)) },
    biases: { q: bQ, k: bK, v: bV, o: layer.bias === null ? null : floats(layer.bias) },
    rotated: own.rotated && { q: narrow(own.rotated[0]), k: narrow(own.rotated[1]) },
    scale: data.scale,
    scaleName: data.scale_name,
    scores: square(own.scores),
    pattern: square(own.pattern),
    z: narrow(own.z),
    result: wide(own.result),
    added,
    // The sum of two 32-bit floats, as the model adds them.
    after: table(
      n,
      data.d_model,
      stream.values.map((x, i) => x + added.values[i]),
    ),
    attends: mayAttend(window),
    replacesStream: data.replaces_stream,
  };
}
