/**
 * nodekeeper advise: which grace periods would have marked how many machines that were alive.
 *
 * Reads the silences that node-monitor has counted in the last 30 days. The rule is advise-grace.ts.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { recommendation, roundedText } from '../shared/fleet/silences/advice-text.ts';
import { type AdviceReport, adviseGrace, type GraceAdvice } from '../shared/fleet/silences/advise-grace.ts';
import { type SilenceHour, silenceBucketOf } from '../shared/fleet/silences/silence-hour.ts';
import type { KubeSilenceHistogram } from '../shared/kinds/types.ts';
import { parseTimeMs } from '../shared/kubernetes/time.ts';
import { adviceSvg } from './advice-svg.ts';
import { type ApiRequest, type SendToApi, sendToApi } from './api-request.ts';
import { CommandError, type CommandIo } from './command.ts';
import { apiAccess } from './kubeconfig.ts';

export const ADVISE_USAGE = [
  'nodekeeper advise [--zone ZONE] [--profile NAME] [--at-most FALSE-MARKS] [--json] [--svg FILE]',
  '  --at-most: accepted false marks per 1,000 node-days, 1 by default; with 95 % probability there are fewer',
  '  each with [--kubeconfig FILE] [--context NAME] or [--server URL --token TOKEN [--certificate-authority FILE]]',
].join('\n');

const HISTOGRAMS = '/apis/nodekeeper.dev/v1alpha1/silencehistograms';
const PAGE_ITEMS = 500;
/** 100 zones and profiles in 30 days. */
const PAGES_MAX = 150;
/** Accepted false marks per 1,000 node-days. */
const AT_MOST_DEFAULT = 1;

type Send = (request: ApiRequest) => Promise<unknown>;

export async function adviseCommand(
  args: readonly string[],
  { environment, print }: CommandIo,
  send: SendToApi = sendToApi,
): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      zone: { type: 'string' },
      profile: { type: 'string' },
      'at-most': { type: 'string', default: String(AT_MOST_DEFAULT) },
      json: { type: 'boolean' },
      svg: { type: 'string' },
      kubeconfig: { type: 'string' },
      context: { type: 'string' },
      server: { type: 'string' },
      token: { type: 'string' },
      'certificate-authority': { type: 'string' },
    },
  });
  if (positionals.length > 0) throw new CommandError(`advise has no argument ${positionals[0]}`, ADVISE_USAGE);
  const limit = Number(values['at-most']);
  if (!(limit > 0 && limit <= 1_000)) {
    throw new CommandError(`--at-most must be a number over 0, up to 1000, not ${values['at-most']}`, ADVISE_USAGE);
  }
  const access = apiAccess(values, environment);
  const hours = (await readSilenceHours((request) => send(access, request))).filter(
    ({ zone, profile }) =>
      (values.zone === undefined || zone === values.zone) &&
      (values.profile === undefined || profile === values.profile),
  );
  if (hours.length === 0) throw noHours(values);
  const report = adviceReport(hours, limit);
  if (values.svg !== undefined) writeSvg(values.svg, adviceSvg(report.profiles, limit));
  if (values.json === true) print(JSON.stringify(report, undefined, 2));
  else for (const each of report.profiles) for (const line of adviceLines(each, limit)) print(line);
}

function writeSvg(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (cause) {
    throw new CommandError(`${path} cannot be written: ${(cause as Error).message}`, ADVISE_USAGE, { cause });
  }
}

/** The advice for all zones and profiles of a cluster. */
export const readAdvice = async (send: Send): Promise<AdviceReport> =>
  adviceReport(await readSilenceHours(send), AT_MOST_DEFAULT);

const adviceReport = (hours: readonly SilenceHour[], limitPer1000NodeDays: number): AdviceReport => ({
  limitPer1000NodeDays,
  profiles: adviseGrace(hours, limitPer1000NodeDays),
});

const noHours = ({ zone, profile }: { readonly zone?: string | undefined; readonly profile?: string | undefined }) =>
  new CommandError(
    'no hour has been counted yet'.concat(
      zone === undefined ? '' : ` in zone ${JSON.stringify(zone)}`,
      profile === undefined ? '' : ` for profile ${JSON.stringify(profile)}`,
    ),
    'node-monitor writes an hour when the next one begins; see kubectl get silencehistograms',
  );

/** @throws CommandError if there are more pages than a fleet of 100 zones writes in 30 days */
async function readSilenceHours(send: Send): Promise<readonly SilenceHour[]> {
  const hours: SilenceHour[] = [];
  let after = '';
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = new URLSearchParams({ limit: String(PAGE_ITEMS), ...(after === '' ? {} : { continue: after }) });
    const listed = (await send({ method: 'GET', path: `${HISTOGRAMS}?${query}` })) as {
      readonly items: readonly KubeSilenceHistogram[];
      readonly metadata?: { readonly continue?: string };
    };
    hours.push(...listed.items.map(hourOf));
    after = listed.metadata?.continue ?? '';
    if (after === '') return hours;
  }
  throw new CommandError('there are too many counted hours', 'name one zone with --zone');
}

const hourOf = ({ spec = {} }: KubeSilenceHistogram): SilenceHour => ({
  hourStartMs: parseTimeMs(spec.hour) ?? 0,
  zone: spec.zone ?? '',
  profile: spec.profile ?? '',
  slot: 0,
  observedSeconds: spec.observedSeconds ?? 0,
  nodeSeconds: spec.nodeSeconds ?? 0,
  nodes: spec.nodes ?? 0,
  beatIntervalSeconds: spec.beatIntervalSeconds ?? 0,
  graceSeconds: spec.graceSeconds ?? 0,
  periodSeconds: spec.periodSeconds ?? 0,
  counts: (spec.buckets ?? []).map(({ upToMilliseconds, silences }) => [
    silenceBucketOf(upToMilliseconds / 1_000),
    silences,
  ]),
  uncounted: spec.uncounted ?? 0,
});

function* adviceLines(advice: GraceAdvice, limit: number): Generator<string> {
  const { profile, nodes, nodeDays, hours, observedHours, uncounted, returned, graceSeconds, candidates } = advice;
  yield `profile ${profile}: ${nodes} live machines, ${roundedText(nodeDays)} node-days in ${roundedText(advice.days)} days`;
  const lostHours = hours - observedHours;
  yield `  observed ${roundedText(observedHours)} of ${roundedText(hours)} hours${lostHours >= 0.05 ? `; ${roundedText(lostHours)} hours are not counted` : ''}`;
  if (uncounted > 0) yield `  ${uncounted} late nodes were not counted, because there were too many at once`;
  if (returned > 0) yield `  ${returned} machines returned within 10 minutes after a mark: they count as alive`;
  yield '';
  yield '  GRACE  FALSE MARKS  PER 1,000 NODE-DAYS (95 % BOUND)  DETECTION P50  MAX';
  for (const each of candidates) {
    const note =
      each.graceSeconds === graceSeconds
        ? '  in force'
        : each.allowed
          ? each === advice.recommended
            ? '  recommended'
            : ''
          : '  too short for the interval';
    yield [
      `  ${`${each.graceSeconds}s`.padStart(5)}`,
      String(each.falseMarks).padStart(11),
      roundedText(each.boundPer1000NodeDays).padStart(32),
      `${each.detectionP50Seconds}s`.padStart(13),
      `${each.detectionMaxSeconds}s`,
    ]
      .join('  ')
      .concat(note);
  }
  yield '';
  yield recommendation(advice, limit);
  yield '';
}
