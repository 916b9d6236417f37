/** Probability that the true mean is above the bound. */
const ERROR_PROBABILITY = 0.05;
/** The value that a standard normal variable exceeds with that probability. */
const NORMAL_95 = 1.644854;
/** Up to here the bound is computed exactly. */
const EXACT_COUNT_MAX = 100;
/** Halvings of an interval of some hundred: below the precision of a double. */
const HALVINGS = 60;

/**
 * The largest mean of rare events that a count is compatible with, with 95 % confidence (one-sided): 3.0 for none (the
 * rule of three), 4.74 for one. For a share of many trials it is the bound of Clopper and Pearson. It assumes that
 * events are independent. Marks of one fault are not, so the true bound is wider when there are any.
 */
export function poissonBound95(count: number): number {
  if (count > EXACT_COUNT_MAX) return approximateBound(count + 1);
  let low = count;
  let high = 10 + 3 * count;
  for (let step = 0; step < HALVINGS; step += 1) {
    const mean = (low + high) / 2;
    if (atMost(count, mean) > ERROR_PROBABILITY) low = mean;
    else high = mean;
  }
  return high;
}

/**
 * Half the quantile of chi-squared, as Wilson and Hilferty approximate it. Over 100 events the error is below 0.01 %.
 */
const approximateBound = (shape: number): number =>
  shape * (1 - 1 / (9 * shape) + NORMAL_95 / (3 * Math.sqrt(shape))) ** 3;

/** Probability of so many events or fewer where `mean` are expected. */
function atMost(count: number, mean: number): number {
  let term = Math.exp(-mean);
  let sum = term;
  for (let event = 1; event <= count; event += 1) {
    term *= mean / event;
    sum += term;
  }
  return sum;
}
