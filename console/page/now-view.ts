/** The first view: what is wrong now, what happens next and why, and the last hours of every zone. */
import { Fragment, h, type JSX } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { formatAge } from '../../shared/kubernetes/age.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import type { EvictablePod } from '../model/eviction-plan.ts';
import { sampleValue } from '../model/metrics-text.ts';
import { type DeploymentSummary, deploymentSummaryOf } from '../model/pods.ts';
import { type Level, type NextEvent, quietText, type Trouble, troublesOf, worstFirst } from '../model/situation.ts';
import { TERMS, termIn } from '../model/terms.ts';
import { disruptionRow, gateRow, lastTroubleMs, type TimelineSpan, zoneRow } from '../model/timeline.ts';
import { zonesOf } from '../model/zone-summary.ts';
import { clusterClock } from './clock.ts';
import type { ClusterView } from './cluster-feed.ts';
import { DECISION_COLUMNS, decisionRows, type NamedDecision, readClusterDecisions } from './decisions.ts';
import { ClockTime, Explained, exactTime, Failure, Sentence, Table, useNowMs } from './elements.ts';
import { useHeartbeats } from './heartbeats.ts';
import { readPages } from './requests.ts';
import { TimelineView } from './timeline-view.ts';
import { usePoll } from './use-poll.ts';
import { Zones } from './zones-view.ts';

const PODS_MS = 15_000;
const DEPLOYMENTS_MS = 15_000;
/** A change of a zone or of the gate reads them at once. */
const DECISIONS_MS = 60_000;
const RECORDS_MS = 30 * 86_400_000;
/** The pods of so many nodes are read: each needs a query. */
const POD_NODES_MAX = 20;
const POD_PAGES_MAX = 4;
const DEPLOYMENT_PAGES_MAX = 4;
const WHY_MAX = 6;
const OTHERS_MAX = 12;

interface NowProps {
  readonly view: ClusterView;
  /** The data is not current: the header says so. */
  readonly isOld: boolean;
}

export function NowView({ view, isOld }: NowProps): JSX.Element {
  const nowMs = useNowMs();
  const zones = zonesOf(view.nodes.values(), view.metrics, nowMs).toSorted(worstFirst);
  const { renewedAtMs, readAtMs: heartbeatsReadAtMs } = useHeartbeats(view.nodes.size);
  const down = [...view.nodes.values()]
    .filter(({ state, plannedSilence }) => state !== 'Ready' && plannedSilence === undefined)
    .map(({ name }) => name)
    .slice(0, POD_NODES_MAX);
  const pods = usePoll(down.length === 0 ? 'no pods' : 'pods', PODS_MS, () => readPodsOf(down)).value;
  const deployments = usePoll('deployments', DEPLOYMENTS_MS, readDeployments);
  const names = zones.map(({ zone }) => zone).toSorted();
  const decisions = usePoll(
    `decisions ${names.join()}`,
    DECISIONS_MS,
    () => readClusterDecisions(names, clusterClock.nowMs() - RECORDS_MS),
    // A new state has a new decision.
    JSON.stringify([zones.map(({ state }) => state), view.status?.gate, view.status?.totalDisruption]),
  );
  // The newest first.
  const records = useMemo(() => (decisions.value ?? []).map(({ record }) => record), [decisions.value]);
  const troubles = troublesOf({
    nodes: [...view.nodes.values()],
    zones,
    status: view.status,
    renewedAtMs,
    heartbeatsReadAtMs,
    podsOf: (node) => pods?.get(node),
    oldestPending: view.oldestPendingPod,
    deployments: deployments.value ?? [],
    disruptionEndedMs: records.find(({ act }) => act === 'TotalDisruptionLeft')?.atMs,
    nowMs,
  });
  const span: TimelineSpan = { fromMs: nowMs - RECORDS_MS, toMs: nowMs };
  const lastMs = lastTroubleMs([
    gateRow(records, undefined, span),
    disruptionRow(records, undefined, span),
    ...names.map((zone) => zoneRow(zone, records, undefined, span)),
  ]);
  const [worst, ...others] = troubles;
  useEffect(() => {
    const failing = troubles.filter(({ level }) => level === 'bad').length;
    const title = `${view.cluster} – Nodekeeper`;
    document.title = failing > 0 ? `✕ ${failing} · ${title}` : title;
    return () => {
      document.title = title;
    };
  });
  return h(
    'section',
    { 'aria-labelledby': 'now-title', class: 'now' },
    h('h2', { id: 'now-title', class: 'hidden' }, 'Now'),
    h('p', { role: 'status', class: 'hidden' }, troubles.map(({ subject }) => subject).join(', ')),
    worst === undefined
      ? h(Quiet, { view, lastMs: decisions.value === undefined || isOld ? 'unknown' : lastMs, isOld, nowMs })
      : h(Situation, { trouble: worst, decisions: decisions.value ?? [] }),
    h(GateLine, { view, areAllReady: worst !== undefined && view.isListed && down.length === 0 }),
    others.length === 0
      ? null
      : h(
          'ul',
          { class: 'troubles' },
          ...others
            .slice(0, OTHERS_MAX)
            .map((trouble) => h('li', { key: trouble.key }, h(Other, { trouble, decisions: decisions.value ?? [] }))),
        ),
    others.length > OTHERS_MAX ? h('p', { class: 'note' }, `${others.length - OTHERS_MAX} more are not listed.`) : null,
    h(Failure, { message: isOld ? undefined : decisions.failure }),
    h(TimelineView, { view, zones, records, nowMs }),
    h(Zones, { view, zones }),
  );
}

const SIGNS: Readonly<Record<Level, string>> = { bad: '✕', warn: '⚠', note: 'ℹ' };

interface TroubleProps {
  readonly trouble: Trouble;
  readonly decisions: readonly NamedDecision[];
}

const titleOf = ({ sinceMs }: Trouble): string | undefined =>
  sinceMs === undefined ? undefined : `Since ${exactTime(sinceMs)}`;

/** A link has its explanation as a title: inside a link, a word has no focus of its own. */
function Subject({ trouble: { subject, href } }: { readonly trouble: Trouble }): JSX.Element {
  const term = termIn(subject);
  return h('a', { href, title: term === undefined ? undefined : TERMS[term] }, subject);
}

const Situation = ({ trouble, decisions }: TroubleProps): JSX.Element =>
  h(
    'div',
    { class: `situation is-${trouble.level}` },
    h(
      'p',
      { class: 'headline', title: titleOf(trouble) },
      `${SIGNS[trouble.level]} `,
      h(Subject, { trouble }),
      h(Sentence, { text: `: ${trouble.text}` }),
    ),
    h(Next, { events: trouble.next }),
    h(Why, { trouble, decisions }),
  );

const Other = ({ trouble, decisions }: TroubleProps): JSX.Element =>
  h(
    'div',
    { class: `trouble is-${trouble.level}` },
    h(
      'p',
      { title: titleOf(trouble) },
      h('span', { class: 'sign', 'aria-hidden': 'true' }, SIGNS[trouble.level]),
      ' ',
      h(Subject, { trouble }),
      h(Sentence, { text: `: ${trouble.text}` }),
    ),
    h(Next, { events: trouble.next }),
    h(Why, { trouble, decisions }),
  );

/** What happens next, with its time and how long until then. */
const Next = ({ events }: { readonly events: readonly NextEvent[] }): JSX.Element | null =>
  events.length === 0
    ? null
    : h(
        'ul',
        { class: 'next', 'aria-label': 'What happens next' },
        ...events.map((event) => h('li', { key: event.text }, h(NextLine, event))),
      );

function NextLine({ atMs, text }: NextEvent): JSX.Element {
  const nowMs = useNowMs();
  if (atMs === undefined) return h('span', null, h(Sentence, { text }));
  const when = atMs <= nowMs ? ' (now): ' : ` (in ${formatAge(atMs - nowMs + 999)}): `;
  return h('span', null, h('strong', null, h(ClockTime, { atMs })), when, h(Sentence, { text }), '.');
}

/** The decisions that it rests on, with their inputs. */
function Why({ trouble, decisions }: TroubleProps): JSX.Element | null {
  if (trouble.zones.length === 0) return null;
  const about = decisions.filter(({ record: { about } }) =>
    about.kind === 'Fleet' ? trouble.zones.includes('') : about.kind === 'Zone' && trouble.zones.includes(about.name),
  );
  return h(
    'details',
    { class: 'why' },
    h('summary', null, 'Why?'),
    h(Table, {
      caption: `Decisions about ${trouble.subject}`,
      columns: DECISION_COLUMNS,
      rows: decisionRows(about.slice(0, WHY_MAX)),
      empty: 'No decision about it is recorded.',
    }),
    h('p', null, h('a', { href: '#/decisions' }, 'All decisions')),
  );
}

interface QuietProps {
  readonly view: ClusterView;
  readonly lastMs: number | undefined | 'unknown';
  readonly isOld: boolean;
  readonly nowMs: number;
}

function Quiet({ view: { isListed, isCut, nodes }, lastMs, isOld, nowMs }: QuietProps): JSX.Element {
  if (!isListed) return h('div', { class: 'situation' }, h('p', { class: 'headline' }, 'The nodes are being read…'));
  const text = quietText(nodes.size, lastMs, nowMs, isCut);
  return h(
    'div',
    { class: `situation ${nodes.size === 0 ? '' : 'is-good'}` },
    h(
      'p',
      { class: 'headline', title: typeof lastMs === 'number' ? `Until ${exactTime(lastMs)}` : undefined },
      isOld ? 'Last known: ' : nodes.size === 0 ? '' : '✓ ',
      text,
    ),
  );
}

/** Whether silence can be trusted: the reason to believe the sentence above it. */
interface GateLineProps {
  readonly view: ClusterView;
  /** Said here where something else is wrong. */
  readonly areAllReady: boolean;
}

function GateLine({ view: { status, metrics, nodes }, areAllReady }: GateLineProps): JSX.Element | null {
  if (status?.gate?.state !== 'Open') return null;
  const accepted = sampleValue(metrics, 'nodekeeper_probes', { result: 'accepted' });
  const failed = sampleValue(metrics, 'nodekeeper_probes', { result: 'failed' });
  const arrive =
    accepted === undefined || failed === undefined || accepted + failed === 0
      ? []
      : [` arrive (${accepted} of ${accepted + failed}).`];
  return h(
    'p',
    { class: 'gate-line' },
    areAllReady && nodes.size > 0 ? `No node is NotReady (${nodes.size}). ` : '',
    h(Explained, { term: 'gate', text: 'Gate' }),
    arrive.length === 0
      ? ' open.'
      : h(Fragment, null, ' open: our ', h(Explained, { term: 'own heartbeats' }), ...arrive),
  );
}

async function readDeployments(): Promise<readonly DeploymentSummary[]> {
  const found: DeploymentSummary[] = [];
  await readPages<KubeObject>(
    '/apis/apps/v1/deployments',
    {},
    { pagesMax: DEPLOYMENT_PAGES_MAX, onPage: (items) => found.push(...items.map(deploymentSummaryOf)) },
  );
  return found;
}

async function readPodsOf(nodes: readonly string[]): Promise<ReadonlyMap<string, readonly EvictablePod[]>> {
  return new Map(await Promise.all(nodes.map(async (node) => [node, await readEvictable(node)] as const)));
}

async function readEvictable(node: string): Promise<readonly EvictablePod[]> {
  const found: EvictablePod[] = [];
  await readPages<KubePod>(
    '/api/v1/pods',
    { fieldSelector: `spec.nodeName=${node}` },
    { pagesMax: POD_PAGES_MAX, onPage: (items) => found.push(...items.map(evictableOf)) },
  );
  return found;
}

const evictableOf = ({ metadata, spec, status }: KubePod): EvictablePod => ({
  tolerations: spec?.tolerations ?? [],
  boundAtMs:
    parseTimeMs(status?.conditions?.find(({ type }) => type === 'PodScheduled')?.lastTransitionTime) ??
    parseTimeMs(metadata.creationTimestamp) ??
    0,
  isTerminating: metadata.deletionTimestamp !== undefined,
});
