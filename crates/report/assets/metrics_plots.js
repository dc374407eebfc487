// Loss and accuracy over training, in the form in which curves.js takes them.

/** The losses, with what the best predictor pays if it is known. */
export function lossPlot(metrics, floor, marks) {
  const losses = metrics.flatMap(({ loss, validation }) => [loss, validation]).filter((loss) => loss !== null);
  return {
    name: "Loss",
    y: { name: "loss, nats", low: 0, high: Math.max(...losses, 0.1) },
    lines: [
      line(metrics, "validation", (row) => row.validation),
      line(metrics, "training batch", (row) => row.loss),
    ].filter(({ points }) => points.length || !metrics.length),
    levels: floor === null ? [] : [{ name: "best possible", value: floor }],
    marks,
  };
}

/** The accuracies, with that of guessing and the best that can be expected if it is known. */
export function accuracyPlot(metrics, { chance, best_accuracy: best }, marks) {
  return {
    name: "Accuracy",
    y: { name: "accuracy, share of right answers", low: 0, high: 1 },
    lines: [
      line(metrics, "validation", (row) => row.accuracy),
      line(metrics, "training set", (row) => row.training_accuracy),
    ].filter(({ points }) => points.length),
    levels: [
      ...(best === null ? [] : [{ name: "best possible", value: best }]),
      { name: "guessing", value: chance },
    ],
    marks,
  };
}

function line(metrics, name, value) {
  const known = metrics.filter((row) => value(row) !== null && value(row) !== undefined);
  return { name, points: known.map((row) => [row.step, value(row)]) };
}
