/**
 * The largest mean of rare events that a count is compatible with, with 95 % confidence (one-sided, exact): 3.0 for
 * none (the rule of three), 4.74 for one. For a share of many trials it is the bound of Clopper and Pearson. It assumes
 * that events are independent. Marks of one fault are not, so the true bound is wider when there are any.
 */
export function poissonBound95(count: number): number {
  let low = count;
  let high = 10 + 3 * count;
  for (let step = 0; step < 60; step += 1) {
    const mean = (low + high) / 2;
    if (atMost(count, mean) > 0.05) low = mean;
    else high = mean;
  }
  return high;
}

/** Chance of so many events or fewer where `mean` are expected. */
function atMost(count: number, mean: number): number {
  let term = Math.exp(-mean);
  let sum = term;
  for (let k = 1; k <= count; k += 1) {
    term *= mean / k;
    sum += term;
  }
  return sum;
}
