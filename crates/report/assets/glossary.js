// What the words of the pages mean: one plain sentence each, shown where a word is underlined with dots.
import { element } from "./elements.js";
import { KIND, READER, ROLE } from "./vocabulary.js";

const GLOSSARY = {
  [ROLE.induction]: "Looks at the token that followed the current token last time, and so can predict that it follows again.",
  [ROLE.previousToken]: "Looks at the token just before the current one.",
  [ROLE.duplicateToken]: "Looks at earlier places where the current token stood.",
  [ROLE.currentToken]: "Looks at the current token itself.",
  [ROLE.firstToken]: "Looks at the first token of the sequence, where heads often rest that have nothing to do.",
  [ROLE.mixed]: "Looks like none of the roles: no score is half of the way from evenly spread attention to its ceiling.",
  [KIND.probe]: "Sequences of random tokens in which a block comes back, of random length and start. No position gives the answer away.",
  [KIND.task]: "Sequences of the task that the model was trained on. A task can make a head look like what it is not.",
  [READER.queries]: "The queries of later heads read what this head wrote: it decides what they look for.",
  [READER.keys]: "The keys of later heads read what this head wrote: it decides where they find it.",
  [READER.values]: "The values of later heads read what this head wrote: they carry it on.",
  [READER.logits]: "The unembedding reads what this head wrote: it moves the prediction directly.",
  all: "Accuracy falls, but through no single kind of reader.",
  accuracy: "The share of scored positions at which the likeliest token is the right one.",
  "best accuracy": "How often the best predictor is expected to be right that knows the task and which positions are scored. A model that is right more often was lucky.",
  "best possible": "The loss of the best predictor that knows the task and which positions are scored. Nobody can do better.",
  backup: "Nothing is lost without this head alone. Where the other heads of its role are off too, so much accuracy is lost.",
  ceiling: "The largest value that this score can have.",
  circuit: "The fewest edges that were found to carry 0.9 of the behaviour, while all other edges carry what they carry on the corrupted prompt. Another few may carry as much.",
  control: "As many heads of the same layers, drawn at random from those that no test marks as needed.",
  distance: "What the head gives, at the same distances, to words that are no source. A head that only goes by distance scores the same here.",
  edge: "A part that writes and a part that reads it, as queries, keys, values or logits. It is patched alone: the reader gets what the writer wrote on the other prompt.",
  evenly: "Evenly spread attention: every visible token gets the same weight. A head that finds nothing scores this.",
  formed: "The head took on its role between these two measurements. The measurements are some steps apart, so the moment is not known better.",
  guessing: "The accuracy of guessing without looking at the sequence.",
  "in-context score": "The mean loss late in a sequence minus that early in it, in nats. Below 0 the context helps.",
  "first at step": "The first measurement at which a head of the run looks so.",
  "highest score": "The highest score of the role on the probe, over all heads of the run.",
  "without them": "Accuracy without all heads that look so; in the place of each stands its mean.",
  "interchange accuracy": "What one part of the circuit writes is swapped between two inputs. The share of answers that then are what the program says.",
  interval: "95 % interval of the mean, by bootstrap over sequences.",
  "looks like": "Read from where the head looks. It does not show that the model uses it.",
  "logit lens": "What the model would predict if it ended at this depth.",
  loss: "Mean negative log-probability of the right token on the scored positions, in nats.",
  off: "Switched off: something stands in place of the head's blend of values.",
  pattern: "The weights with which each token (a row) looks at the tokens before it (the columns). A row sums to 1.",
  "pattern only": "It looks like its role and does none of its work: nothing is lost without it, even where the other heads of the role are off.",
  questions: "Where the task asks: is the right next token likelier than each wrong one?",
  shuffled: "The score at the same places when the tokens are shuffled, so that no match is there.",
  since: "After the first of these measurements, and by the second, the head passed half of its way from evenly spread attention to its weight at the end. It never fell back.",
  "highest null": "The most of three weights that need no relation: evenly spread attention, the same distances to other words, and the same places when the words are shuffled.",
  "step 0": "The score before training.",
  stream: "The vector at each position to which every part of the model adds, and from which every later part reads.",
  strictness: "What a part outside the circuit writes is swapped between two inputs. The share of answers that stay.",
  unembedding: "The matrix that turns the last vector of the residual stream into a score for each token.",
  "used as": "Through which input of later parts the model uses what the head wrote: hidden from that input alone, accuracy falls. It is a causal test, apart from what the head looks like.",
  validation: "Sequences that the model was never trained on, always the same.",
  writes: "Root mean square of what the head adds to the stream, its mean taken off, over that of the stream. Near 0: it looks, and writes nearly nothing.",
};

/** Whether a word is explained. */
export const isKnown = (word) => Object.hasOwn(GLOSSARY, word);

/** `text`, underlined with dots, with what `word` means for a pointer, a finger and the keyboard. */
export function term(word, text = word) {
  const meaning = GLOSSARY[word];
  if (!meaning) return document.createTextNode(text);
  return element(
    "span",
    { class: "term", tabindex: "0", title: meaning, "data-meaning": meaning, "aria-description": meaning },
    text,
  );
}
