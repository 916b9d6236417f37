/**
 * Measures on virtual time, by fleet size, for the default policy and others: how fast failed nodes are detected, how
 * often live nodes are marked by mistake, and how much a zone without network loses. Writes docs/quality.svg,
 * docs/quality.json and the tables in docs/quality.md between its two markers.
 *
 * Detection and false marks are simulated with the rules alone (domain/), because stores answer the same at any size.
 * Each cut of a zone also runs through the real controllers, over tables in memory, in fleets of up to 100. Both must
 * end alike.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defaultPolicy, type Policy } from '../shared/domain/policy.ts';
import { poissonBound95 } from '../shared/domain/silences/poisson-bound.ts';
import { FAULTS, simulateFalseMarks } from '../simulation/false-marks.ts';
import {
  type Benchmark,
  percentile,
  type Report,
  readOptions,
  rounded,
  wholeNumber,
  wholeNumbers,
} from './benchmark.ts';
import { measureDetection } from './detection.ts';
import type { Cell, CutFigures, FalseMarkFigures, QualityFigures } from './quality-figures.ts';
import { qualitySvg } from './quality-svg.ts';
import { cutByControllers, cutByRules } from './zone-cut.ts';

const DOCS = fileURLToPath(new URL('../docs', import.meta.url));
const BEGIN = '<!-- made by npm run bench -- quality: begin -->';
const END = '<!-- made by npm run bench -- quality: end -->';
const SIZES = [10, 100, 1_000, 10_000];
const CUT_MINUTES = [10, 15, 30];
const CASES = 300;
const SEED = 71;
const MEAN_CALM_SECONDS = 180;
const CHECKED_NODES_MAX = 100;
const WITHOUT_LOSS = FAULTS.filter((kind) => kind !== 'ingestLossy');
/** Node-hours under faults by fleet size. Small fleets get fewer: a fault costs them as much as large ones. */
const NODE_HOURS: Readonly<Record<number, number>> = { 10: 20_000, 100: 160_000, 1000: 600_000, 10000: 220_000 };
const NODE_HOURS_OTHERWISE = 50_000;
/** The policies besides the default one get this share of them. */
const OTHER_SHARE = 0.5;
const LOSSY = { nodes: 1_000, nodeHours: 100_000 };

const POLICIES: Readonly<Record<string, Policy>> = {
  default: defaultPolicy,
  patient: { ...defaultPolicy, nodeMonitorGracePeriodSeconds: 90 },
  quick: {
    ...defaultPolicy,
    beatIntervalSeconds: 5,
    leaseDurationSeconds: 20,
    nodeMonitorGracePeriodSeconds: 20,
  },
  hold: { ...defaultPolicy, fullDisruption: 'hold' },
};
/** Another eviction rate changes no detection and no false mark: only its zone cuts are measured. */
const CUT_ONLY = { hold: 'default' } as const;

export const quality: Benchmark = {
  name: 'quality',
  about: 'detection, false marks and zone cuts by fleet size and policy; writes docs/quality.*',
  usage: '[--nodes 10,100,…] [--effort PERCENT of the node-hours] [--out DIRECTORY]',
  onlyByName: true,
  async run(report, words) {
    const values = readOptions(words, {
      nodes: { type: 'string' },
      effort: { type: 'string' },
      out: { type: 'string' },
    });
    const sizes = wholeNumbers('nodes', values.nodes, { least: 4, most: 100_000, otherwise: SIZES });
    const effort = wholeNumber('effort', values.effort, { least: 1, most: 1_000, otherwise: 100 }) / 100;
    const directory = values.out ?? DOCS;
    // Before the hours of measuring, not after.
    mkdirSync(directory, { recursive: true });
    const command = ['npm run bench -- quality', ...words].join(' ');
    const started = process.cpuUsage();
    const figures = await measure(report, sizes, effort, command);
    const { user, system } = process.cpuUsage(started);
    write(directory, figures);
    report({ part: 'written', to: values.out ?? 'docs', cpuSeconds: rounded((user + system) / 1e6) });
  },
};

async function measure(
  report: Report,
  sizes: readonly number[],
  effort: number,
  command: string,
): Promise<QualityFigures> {
  const cells: Cell[] = [];
  let checkedWithControllers = 0;
  for (const [name, policy] of Object.entries(POLICIES)) {
    for (const nodes of sizes) {
      const twin = cells.find((cell) => cell.policy === CUT_ONLY[name as 'hold'] && cell.nodes === nodes);
      const cuts: CutFigures[] = [];
      for (const minutes of CUT_MINUTES) {
        cuts.push(await measureCut(nodes, policy, minutes));
        if (nodes <= CHECKED_NODES_MAX) checkedWithControllers += 1;
      }
      const cell: Cell = {
        policy: name,
        nodes,
        detection: twin?.detection ?? detect(nodes, policy),
        falseMarks: twin?.falseMarks ?? mistakes(nodes, policy, name, effort),
        cuts,
      };
      cells.push(cell);
      reportCell(report, cell);
    }
  }
  const measured = Object.entries(POLICIES).filter(([name]) => !(name in CUT_ONLY));
  const pooled = measured.map(([policy]) => {
    const all = cells.filter((cell) => cell.policy === policy).map(({ falseMarks }) => falseMarks);
    const sum = (of: 'nodeHours' | 'falseMarks') => all.reduce((total, each) => total + each[of], 0);
    return { policy, ...perMillion(sum('nodeHours'), sum('falseMarks')) };
  });
  for (const each of pooled) report({ part: 'all sizes', ...each });
  const lossy = measured.map(([name, policy]) => {
    const hours = Math.max(1, Math.round((LOSSY.nodeHours * effort) / LOSSY.nodes));
    const settings = { nodes: LOSSY.nodes, hours, seed: SEED, policy, meanCalmSeconds: MEAN_CALM_SECONDS };
    const { nodeHours, falseMarks } = simulateFalseMarks(settings);
    return { policy: name, ...perMillion(nodeHours, falseMarks) };
  });
  for (const each of lossy) report({ part: 'with a lossy path among the faults', nodes: LOSSY.nodes, ...each });
  return {
    command,
    sizes,
    policies: Object.entries(POLICIES).map(([name, policy]) => ({
      name,
      graceSeconds: policy.nodeMonitorGracePeriodSeconds,
      beatSeconds: policy.beatIntervalSeconds,
      periodSeconds: policy.nodeMonitorPeriodSeconds,
      cutOnly: name in CUT_ONLY,
    })),
    cells,
    pooled,
    lossy,
    checkedWithControllers,
  };
}

function detect(nodes: number, policy: Policy): Cell['detection'] {
  const { latenciesMs } = measureDetection(nodes, policy, CASES);
  const seconds = latenciesMs.map((ms) => ms / 1_000);
  return {
    cases: seconds.length,
    p50Seconds: rounded(percentile(seconds, 0.5)),
    p99Seconds: rounded(percentile(seconds, 0.99)),
    maxSeconds: rounded(Math.max(...seconds)),
    limitSeconds: policy.nodeMonitorGracePeriodSeconds + policy.nodeMonitorPeriodSeconds,
  };
}

function mistakes(nodes: number, policy: Policy, name: string, effort: number): FalseMarkFigures {
  const wanted = (NODE_HOURS[nodes] ?? NODE_HOURS_OTHERWISE) * effort * (name === 'default' ? 1 : OTHER_SHARE);
  const { nodeHours, falseMarks } = simulateFalseMarks({
    nodes,
    hours: Math.max(1, Math.round(wanted / nodes)),
    seed: SEED + nodes,
    policy,
    meanCalmSeconds: MEAN_CALM_SECONDS,
    faults: WITHOUT_LOSS,
  });
  return perMillion(nodeHours, falseMarks);
}

const perMillion = (nodeHours: number, falseMarks: number): FalseMarkFigures => ({
  nodeHours,
  falseMarks,
  perMillionNodeHours: rounded((falseMarks / nodeHours) * 1e6),
  bound95PerMillionNodeHours: rounded((poissonBound95(falseMarks) / nodeHours) * 1e6, 3),
});

/**
 * Pods go up to two periods after they are due, in which time the limiter lets one node more pass.
 * @throws when rules and controllers come to different ends
 */
async function measureCut(nodes: number, policy: Policy, minutes: number): Promise<CutFigures> {
  const options = { nodes, policy, cutSeconds: minutes * 60 };
  const result = await cutByRules(options);
  if (nodes <= CHECKED_NODES_MAX) {
    const { podsDeleted, ...checked } = await cutByControllers(options);
    if (JSON.stringify(checked) !== JSON.stringify(result) || Math.abs(podsDeleted - result.evicted) > 1) {
      throw new Error(
        `a cut of ${minutes} minutes, ${nodes} nodes: the rules say ${JSON.stringify(result)}, ` +
          `the controllers ${JSON.stringify(checked)} and ${podsDeleted} pods`,
      );
    }
  }
  return {
    minutes,
    cutNodes: result.cutNodes,
    taintedShare: rounded(result.tainted / result.cutNodes, 3),
    evictedShare: rounded(result.evicted / result.cutNodes, 3),
    othersTouched: result.othersTouched,
    recoveryP50Seconds: result.recoveryP50Seconds,
    recoveryMaxSeconds: result.recoveryMaxSeconds,
  };
}

function reportCell(report: Report, { policy, nodes, detection, falseMarks, cuts }: Cell): void {
  report({
    policy,
    nodes,
    detectionP50Seconds: detection.p50Seconds,
    detectionP99Seconds: detection.p99Seconds,
    detectionMaxSeconds: detection.maxSeconds,
    limitSeconds: detection.limitSeconds,
    cases: detection.cases,
    ...falseMarks,
  });
  for (const { minutes, ...cut } of cuts) report({ policy, nodes, cutMinutes: minutes, ...cut });
}

function write(directory: string, figures: QualityFigures): void {
  const json = JSON.stringify(figures, undefined, 2);
  // Numbers side by side, as the formatter has them.
  const compact = json.replace(/\[\s+([\d\s,]+?)\s+\]/g, (_, numbers: string) => `[${numbers.replace(/\s+/g, ' ')}]`);
  writeFileSync(join(directory, 'quality.json'), `${compact}\n`);
  writeFileSync(join(directory, 'quality.svg'), qualitySvg(figures));
  const page = join(directory, 'quality.md');
  const text = existsSync(page) ? readFileSync(page, 'utf8') : `# Quality\n\n${BEGIN}\n${END}\n`;
  const [before, rest] = text.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error(`${page} has lost its markers ${BEGIN} and ${END}`);
  writeFileSync(page, `${before}${BEGIN}\n\n${tables(figures)}\n\n${END}${after}`);
}

/** The tables of docs/quality.md. */
export function tables({ command, cells, pooled, lossy, checkedWithControllers, policies }: QualityFigures): string {
  const percent = (share: number): string => `${rounded(100 * share, 3)} %`;
  const row = (...values: readonly (string | number)[]): string => `| ${values.join(' | ')} |`;
  const head = (...names: readonly string[]): string[] => [row(...names), row(...names.map(() => '---'))];
  const own = cells.filter(({ policy }) => !(policy in CUT_ONLY));
  return [
    `\`${command}\` generates these tables, the [figures](quality.json) and the picture.`,
    `${checkedWithControllers} of the cuts also ran through the real controllers, with the same result.`,
    '',
    ...head('policy', 'grace period', 'heartbeat', 'period'),
    ...policies.map(({ name, graceSeconds, beatSeconds, periodSeconds }) =>
      row(name, `${graceSeconds} s`, `${beatSeconds} s`, `${periodSeconds} s`),
    ),
    '',
    '`hold` is the default with `fullDisruption: hold`.',
    '',
    '**Failed nodes**: time from the last heartbeat to `Ready=Unknown`.',
    '',
    ...head('policy', 'nodes', 'p50', 'p99', 'max', 'limit', 'cases'),
    ...own.map(({ policy, nodes, detection: d }) =>
      row(policy, nodes, `${d.p50Seconds} s`, `${d.p99Seconds} s`, `${d.maxSeconds} s`, `${d.limitSeconds} s`, d.cases),
    ),
    '',
    '**Live nodes marked by mistake**, under faults of ours: missing, late, doubled and failed ticks, outages of the',
    'heartbeat path, clock steps, stale reads. The last column is the 95 % bound for a million node-hours. With no mark',
    'it is 3 divided by the millions of node-hours simulated.',
    '',
    ...head('policy', 'nodes', 'node-hours', 'marked by mistake', 'at most, per 10⁶ node-hours'),
    ...own.map(({ policy, nodes, falseMarks: m }) =>
      row(policy, nodes, m.nodeHours, m.falseMarks, m.bound95PerMillionNodeHours),
    ),
    ...pooled.map((m) => row(m.policy, 'all', m.nodeHours, m.falseMarks, m.bound95PerMillionNodeHours)),
    ...lossy.map((m) =>
      row(
        `${m.policy}, with a path that loses 10 to 95 % of requests`,
        LOSSY.nodes,
        m.nodeHours,
        m.falseMarks,
        m.bound95PerMillionNodeHours,
      ),
    ),
    '',
    '**One zone of four loses its network** while its nodes live. The columns are:',
    '',
    '- Tainted: share of its nodes that got the NoExecute taint.',
    '- Evicted: share that had the taint for `podEvictionTimeoutSeconds`. Their pods were deleted.',
    '- Recovery: from the end of the cut until a node is Ready and without taint; the last one in brackets.',
    '',
    ...head('policy', 'nodes', 'cut', 'tainted', 'evicted', 'recovery', 'nodes affected elsewhere'),
    ...cells.flatMap(({ policy, nodes, cuts }) =>
      cuts.map((cut) =>
        row(
          policy,
          nodes,
          `${cut.minutes} min`,
          percent(cut.taintedShare),
          percent(cut.evictedShare),
          `${cut.recoveryP50Seconds} s (${cut.recoveryMaxSeconds} s)`,
          cut.othersTouched,
        ),
      ),
    ),
  ].join('\n');
}
