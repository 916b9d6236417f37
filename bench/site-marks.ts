/**
 * Marks by mistake under faults of sites, with witnesses and without (docs/witnesses.md), on virtual time through the
 * rules of a tick. Both are evaluated over the same heartbeats, reports and faults of ours
 * (simulation/site-false-marks.ts).
 */
import { defaultPolicy } from '../shared/fleet/policy.ts';
import { poissonBound95 } from '../shared/fleet/silences/poisson-bound.ts';
import { SITE_FAULTS, type SiteFault } from '../simulation/faulty-site.ts';
import { FAULTS } from '../simulation/own-faults.ts';
import { SITE_PLANTS, type SitePlant, simulateSiteFalseMarks } from '../simulation/site-false-marks.ts';
import { type Benchmark, oneOrAll, readOptions, rounded, UsageError, wholeNumber } from './benchmark.ts';

const NODES = 2_000;
/** A report costs more than a heartbeat, and a relay that lies makes most of them. */
const NODE_HOURS: Readonly<Record<SiteFault, number>> = {
  switchReboot: 200_000,
  oneWayCut: 260_000,
  relayCrash: 260_000,
  slowRelay: 160_000,
  lyingRelay: 60_000,
  lyingPair: 60_000,
};
const OWN_FAULTS = FAULTS.filter((kind) => kind !== 'ingestLossy');
const MEAN_CALM_SECONDS = 180;
/** Clocks of Lambda differ by milliseconds. */
const SKEW_MS = 100;
const SEED = 63;

export const siteMarks: Benchmark = {
  name: 'site-marks',
  about: 'marks by mistake under faults of sites, with witnesses and without, over the same faults (virtual time)',
  usage: `[--fault ${Object.keys(SITE_FAULTS).join('|')}] [--effort 100 PERCENT of a million node-hours] [--seed 63]
  [--nodes 2000] [--hours 0; instead of the effort] [--skew 100 MILLISECONDS] [--plant ${Object.keys(SITE_PLANTS).join('|')}]`,
  onlyByName: true,
  smallest: ['--fault', 'oneWayCut', '--nodes', '40', '--hours', '1'],
  async run(report, words) {
    const text = { type: 'string' } as const;
    const values = readOptions(words, {
      ...{ fault: text, effort: text, seed: text, nodes: text, hours: text, skew: text, plant: text },
    });
    const kinds = Object.keys(SITE_FAULTS) as SiteFault[];
    const faults = oneOrAll('fault', values.fault, Object.fromEntries(kinds.map((kind) => [kind, kind])));
    const effort = wholeNumber('effort', values.effort, { least: 1, most: 1_000, otherwise: 100 }) / 100;
    const seed = wholeNumber('seed', values.seed, { least: 1, most: 1_000_000, otherwise: SEED });
    const nodes = wholeNumber('nodes', values.nodes, { least: 3, most: 100_000, otherwise: NODES });
    const fixedHours = wholeNumber('hours', values.hours, { least: 0, most: 100_000, otherwise: 0 });
    const skewMs = wholeNumber('skew', values.skew, { least: 0, most: 1_000, otherwise: SKEW_MS });
    const plants = values.plant === undefined ? [] : [plantOf(values.plant)];
    for (const fault of faults) {
      const hours = fixedHours > 0 ? fixedHours : Math.max(1, Math.round((NODE_HOURS[fault] * effort) / nodes));
      const { nodeHours, without, witnessed, shortened, shortenedMarks, ...counts } = await simulateSiteFalseMarks({
        ...{ nodes, hours, seed, policy: defaultPolicy, siteFaults: [fault], ownFaults: OWN_FAULTS },
        ...{ meanCalmSeconds: MEAN_CALM_SECONDS, skewMs, plants },
      });
      const bound = (marks: number): number => rounded((poissonBound95(marks) / nodeHours) * 1e6, 3);
      report({
        fault,
        nodeHours,
        siteFaults: counts.siteFaults,
        reports: counts.reports,
        falseWithout: without.false,
        falseWith: witnessed.false,
        falseDuring: JSON.stringify(counts.falseMarksDuring),
        bound95WithPerMillion: bound(witnessed.false),
        steppedWithout: without.step,
        steppedWith: witnessed.step,
        cutOffWithout: without.away,
        cutOffWith: witnessed.away,
        deaths: counts.deaths,
        deadWithout: without.off,
        deadWith: witnessed.off,
        shortened: Object.values(shortened).reduce((sum, count) => sum + count, 0),
        shortenedOfDead: shortened.off,
        shortenedOfCutOff: shortened.away,
        shortenedMarks: Object.values(shortenedMarks).reduce((sum, count) => sum + count, 0),
        shortenedMarksOfDead: shortenedMarks.off,
        shortenedMarksOfCutOff: shortenedMarks.away,
      });
    }
  },
};

function plantOf(name: string): SitePlant {
  if (Object.hasOwn(SITE_PLANTS, name)) return name as SitePlant;
  throw new UsageError(`--plant expects one of ${Object.keys(SITE_PLANTS).join(', ')}, not ${name}`);
}
