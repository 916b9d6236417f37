/**
 * The advice on the grace period beside the truth: 20 simulated fleets of known loss. The bound holds with 95 %
 * probability, so 5 of the 100 true rates may be above it.
 */
import { writeFileSync } from 'node:fs';
import { adviceSvg } from '../cli/advice-svg.ts';
import { adviseGrace, type GraceAdvice } from '../shared/fleet/silences/advise-grace.ts';
import {
  type Comparison,
  compareAdvice,
  countedHours,
  isMissed,
  type Loss,
} from '../test/support/known-loss-fleets.ts';
import { type Benchmark, type Report, readOptions, rounded } from './benchmark.ts';

/** Accepted false marks per 1,000 node-days, of the picture. These fleets lose up to a fifth of their heartbeats. */
const LIMIT = 1_000;

export const advice: Benchmark = {
  name: 'advice',
  about: 'the advice on the grace period beside the true rates of 20 simulated fleets of known loss',
  usage: '[--svg FILE]',
  async run(report, options) {
    const { svg } = readOptions(options, { svg: { type: 'string' } });
    const advised: (readonly [Loss, GraceAdvice])[] = [];
    const comparisons = compareAdvice((loss, random) => {
      const [ofFleet] = adviseGrace(countedHours(loss, random), LIMIT);
      advised.push([loss, ofFleet!]);
      return ofFleet!;
    });
    reportFleets(report, comparisons);
    if (svg !== undefined) writeFileSync(svg, adviceSvg(drawn(advised), LIMIT));
  },
};

/** The fleets with the least, the median and the highest loss. */
function drawn(advised: readonly (readonly [Loss, GraceAdvice])[]): GraceAdvice[] {
  const byLoss = advised.toSorted(([one], [other]) => one.lostShare - other.lostShare);
  return [0, Math.floor(byLoss.length / 2), byLoss.length - 1].map((index) => {
    const [{ lostShare }, ofFleet] = byLoss[index]!;
    return { ...ofFleet, profile: `${Math.round(lostShare * 100)} % of heartbeats lost` };
  });
}

function reportFleets(report: Report, comparisons: readonly Comparison[]): void {
  for (const [fleet, ofFleet] of Map.groupBy(comparisons, (each) => each.fleet)) {
    report({
      fleet,
      lostShare: rounded(ofFleet[0]!.loss.lostShare, 3),
      ...Object.fromEntries(
        ofFleet.map(({ graceSeconds, trueRate, bound }) => [
          `at${graceSeconds}s`,
          `${rounded(trueRate, 3)} of at most ${rounded(bound, 3)}`,
        ]),
      ),
      above: ofFleet.filter(isMissed).length,
    });
  }
  report({ what: 'true rates above their bound', above: comparisons.filter(isMissed).length, of: comparisons.length });
}
