// Which keys a query may attend to.

/** Of a causal model whose queries see at most `window` keys, their own among them; null: all up to their own. */
export function mayAttend(window) {
  return (query, key) => key <= query && (window === null || query - key < window);
}
