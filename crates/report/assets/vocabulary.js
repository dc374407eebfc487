// The words of heads, as the types of crates/heads spell them in the files of a run.
// Written by the test in crates/report/src/vocabulary.rs; change it there.

/** What a head can look like; first the role that takes most to tell, last `mixed`, which is none. */
export const ROLE = {
  induction: "induction",
  previousToken: "previous token",
  duplicateToken: "duplicate token",
  currentToken: "current token",
  firstToken: "first token",
  mixed: "mixed",
};

/** What happened to a head's role. */
export const EVENT = {
  emerged: "role_emerged",
  lost: "role_lost",
  rangeEmerged: "range_emerged",
  rangeLost: "range_lost",
};

/** On which sequences a head was watched. */
export const KIND = {
  probe: "probe",
  task: "task",
};

/** Who reads what heads wrote, in the order of tables. */
export const READER = {
  queries: "queries",
  keys: "keys",
  values: "values",
  logits: "logits",
};

/** What heads that are interfered with together have in common, if it is no role. */
export const SET = {
  layer: "layer",
};

/** What stands in place of a head that is off. */
export const PLACE = {
  zero: "0",
  mean: "its mean over sequences and positions",
  resample: "its blend in another sequence",
};
