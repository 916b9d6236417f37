/**
 * nodekeeper explain node NAME, nodekeeper explain pod|deployment|job|… NAMESPACE/NAME
 *
 * Prints the decisions of the controllers about the object, in order and with their reasons. Decisions about its zone
 * and the fleet in the same time are included, and its events. With --verify each rule runs again over its recorded
 * inputs.
 */
import { parseArgs } from 'node:util';
import { DECISION_ACTS, type DecisionAbout, type DecisionRecord } from '../shared/decisions/decision-record.ts';
import { defined } from '../shared/defined.ts';
import { zoneKeyOf } from '../shared/fleet/nodes/node-digest.ts';
import type { KubeObject } from '../shared/kinds/types.ts';
import { formatAge } from '../shared/kubernetes/age.ts';
import { formatTime, parseTimeMs } from '../shared/kubernetes/time.ts';
import { type SendToApi, sendToApi } from './api-request.ts';
import { CommandError, type CommandIo } from './command.ts';
import { schedulingDetails } from './explain-scheduling.ts';
import { EXPLAINED_KINDS, explainedKindOf, ownedBy, pathOf, workloadState } from './explain-workloads.ts';
import { apiAccess } from './kubeconfig.ts';
import { type Asked, durationMs, PAGE_ITEMS, PAGES_MAX, readDecisions } from './read-decisions.ts';
import { type KnownDecision, type Replay, replay } from './replay.ts';

export const EXPLAIN_USAGE = [
  'nodekeeper explain node NAME [--since 24h] [--verify] [--json]',
  'nodekeeper explain pod NAMESPACE/NAME [--since 24h] [--verify] [--json]',
  `nodekeeper explain ${Object.keys(EXPLAINED_KINDS).join('|')} NAMESPACE/NAME [--since 24h] [--verify] [--json]`,
  '  each with [--kubeconfig FILE] [--context NAME] or [--server URL --token TOKEN [--certificate-authority FILE]]',
].join('\n');

/** Decisions about zone and fleet are shown from this long before the first decision. Milliseconds. */
const BEFORE_MS = 120_000;

/** Details stand below the reason. */
const DETAIL_INDENT = ' '.repeat(55);

interface Listed<T> {
  readonly items: readonly T[];
  readonly metadata?: { readonly continue?: string };
}

interface EventObject {
  readonly metadata: { readonly creationTimestamp?: string };
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly count?: number;
  readonly firstTimestamp?: string | null;
  readonly lastTimestamp?: string | null;
}

/** One line of the output. */
interface Step {
  readonly atMs: number;
  readonly about: string;
  readonly what: string;
  readonly reason: string;
  readonly name?: string;
  readonly record?: DecisionRecord;
  readonly replayed?: Replay;
}

export async function explainCommand(
  args: readonly string[],
  { environment, nowMs, print }: CommandIo,
  send: SendToApi = sendToApi,
): Promise<void> {
  const { values, positionals } = parse(args);
  const subject = subjectOf(positionals);
  const sinceMs = nowMs - durationMs(values.since ?? '24h', EXPLAIN_USAGE);
  const asked = { access: apiAccess(values, environment), send, sinceMs };
  const story = await storyOf(asked, subject);
  const steps = story.steps.sort(
    (one, other) => one.atMs - other.atMs || rankOf(one) - rankOf(other) || actOf(one) - actOf(other),
  );
  const shown = values.verify === true ? steps.map(verified) : steps;
  if (shown.length === 0) {
    throw new CommandError(
      `no decision about ${titleOf(subject)} since ${formatTime(sinceMs)}`,
      `try a longer time with --since 30d, or check the name: kubectl get ${listOf(subject)}`,
    );
  }
  if (values.json === true) print(JSON.stringify({ about: subject, ...story.facts, steps: shown }, undefined, 2));
  else for (const line of storyLines(subject, story.facts, shown, sinceMs)) print(line);
  if (values.verify === true) reportReplays(shown, values.json === true ? () => {} : print);
}

const parse = (args: readonly string[]) =>
  parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      since: { type: 'string' },
      verify: { type: 'boolean' },
      json: { type: 'boolean' },
      kubeconfig: { type: 'string' },
      context: { type: 'string' },
      server: { type: 'string' },
      token: { type: 'string' },
      'certificate-authority': { type: 'string' },
    },
  });

function subjectOf([kind, name, ...more]: readonly string[]): DecisionAbout {
  if (kind === undefined || name === undefined || more.length > 0) {
    throw new CommandError('the name of the object is missing, or more than one is named', EXPLAIN_USAGE);
  }
  if (kind === 'node') return { kind: 'Node', name };
  const [namespace = '', podName = '', ...rest] = name.includes('/') ? name.split('/') : ['default', name];
  const known = kind === 'pod' ? 'Pod' : EXPLAINED_KINDS[kind]?.kind;
  if (known === undefined) {
    const kinds = ['node', 'pod', ...Object.keys(EXPLAINED_KINDS)].join(', ');
    throw new CommandError(`explain does not support ${kind}, only ${kinds}`, EXPLAIN_USAGE);
  }
  if (namespace === '' || podName === '' || rest.length > 0) {
    throw new CommandError(`${name} is not NAMESPACE/NAME`, EXPLAIN_USAGE);
  }
  return { kind: known, namespace, name: podName };
}

/** Order within one moment, cause before effect: the node, zone and fleet, workloads and pods, then events. */
const RANKS: Readonly<Partial<Record<DecisionAbout['kind'], number>>> = { Node: 0, Zone: 1, Fleet: 1 };
const rankOf = ({ record }: Step): number => (record === undefined ? 3 : (RANKS[record.about.kind] ?? 2));
const actOf = ({ record }: Step): number => (record === undefined ? 0 : DECISION_ACTS.indexOf(record.act));

const titleOf = ({ kind, namespace, name }: DecisionAbout): string =>
  namespace === undefined ? `${kind.toLowerCase()} ${name}` : `${kind.toLowerCase()} ${namespace}/${name}`;

function listOf(subject: DecisionAbout): string {
  if (subject.kind === 'Node') return 'nodes';
  return `${explainedKindOf(subject)?.plural ?? 'pods'} -A`;
}

interface Story {
  readonly facts: {
    readonly uid?: string;
    readonly zone?: string;
    readonly node?: string;
    /** Lines below the title of a workload. */
    readonly state?: readonly string[];
  };
  readonly steps: Step[];
}

function storyOf(asked: Asked, subject: DecisionAbout): Promise<Story> {
  if (subject.kind === 'Node') return nodeStory(asked, subject.name);
  return subject.kind === 'Pod' ? podStory(asked, subject) : workloadStory(asked, subject);
}

/** The story of a Deployment includes its ReplicaSets, that of a CronJob its Jobs. */
async function workloadStory(asked: Asked, subject: DecisionAbout): Promise<Story> {
  const { namespace = '', name } = subject;
  const kind = explainedKindOf(subject);
  const owned = EXPLAINED_KINDS[kind?.owns ?? ''];
  const [own, workload, events, sets, pods] = await Promise.all([
    decisionsOf(asked, aboutSelector(subject)),
    kind === undefined ? undefined : readIfPresent(asked, pathOf(kind, namespace, name)),
    eventsOf(asked, subject),
    owned === undefined ? [] : listOfPath(asked, pathOf(owned, namespace)),
    listOfPath(asked, `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`),
  ]);
  const ownedSets = workload === undefined ? [] : ownedBy(sets, [workload]);
  const ofSets = await Promise.all(
    ownedSets.map(({ metadata }) =>
      decisionsOf(asked, aboutSelector({ kind: owned?.kind ?? 'Object', namespace, name: metadata.name ?? '' })),
    ),
  );
  const steps = [...own, ...ofSets.flat(), ...events];
  if (workload === undefined) return { facts: defined({ uid: own.at(-1)?.record?.about.uid }), steps };
  const state = [...workloadState(workload, ownedBy(pods, [workload, ...ownedSets]))];
  return { facts: defined({ uid: workload.metadata.uid, state }), steps };
}

const aboutSelector = ({ kind, namespace = '', name }: DecisionAbout): string =>
  `about.kind=${kind},about.namespace=${namespace},about.name=${name}`;

async function listOfPath({ access, send }: Asked, path: string): Promise<readonly KubeObject[]> {
  const items: KubeObject[] = [];
  let after = '';
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = new URLSearchParams({ limit: String(PAGE_ITEMS), ...(after === '' ? {} : { continue: after }) });
    const listed = (await send(access, { method: 'GET', path: `${path}?${query}` })) as Listed<KubeObject>;
    items.push(...listed.items);
    after = listed.metadata?.continue ?? '';
    if (after === '') return items;
  }
  throw new CommandError('there are too many objects', 'use kubectl get instead');
}

async function nodeStory(asked: Asked, name: string): Promise<Story> {
  const [own, node, events] = await Promise.all([
    decisionsOf(asked, `node=${name}`),
    readIfPresent(asked, `/api/v1/nodes/${encodeURIComponent(name)}`),
    eventsOf(asked, { kind: 'Node', name }),
  ]);
  const labels = node?.metadata.labels;
  const zones = new Set(own.flatMap(zonesOf));
  if (node !== undefined) zones.add(zoneKeyOf(labels));
  const fromMs = Math.min(...own.map(({ atMs }) => atMs - BEFORE_MS));
  const around = await zoneAndFleetDecisions(asked, zones, own.length === 0 ? asked.sinceMs : fromMs);
  const zone = node === undefined ? [...zones].at(-1) : zoneKeyOf(labels);
  const uid = node?.metadata.uid ?? own.at(-1)?.record?.about.uid;
  return {
    facts: defined({ uid, zone }),
    // Decisions about zone and fleet alone do not explain a node that has no decisions or does not exist.
    steps: own.length + events.length === 0 && node === undefined ? [] : [...own, ...around, ...events],
  };
}

async function podStory(asked: Asked, { namespace = '', name }: DecisionAbout): Promise<Story> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
  const [own, pod, events] = await Promise.all([
    decisionsOf(asked, `pod=${namespace}/${name}`),
    readIfPresent(asked, path),
    eventsOf(asked, { kind: 'Pod', namespace, name }),
  ]);
  const nodes = new Set(own.flatMap(evictionNodesOf));
  const boundTo = pod?.spec?.['nodeName'];
  if (typeof boundTo === 'string' && boundTo !== '') nodes.add(boundTo);
  const ofNodes = await Promise.all([...nodes].map((node) => decisionsOf(asked, `node=${node}`)));
  const around =
    own.length === 0
      ? []
      : await zoneAndFleetDecisions(asked, new Set(), Math.min(...own.map(({ atMs }) => atMs - BEFORE_MS)));
  const uid = pod?.metadata.uid ?? own.at(-1)?.record?.about.uid;
  const node = [...nodes].at(-1);
  return {
    facts: defined({ uid, node }),
    steps: [...own, ...ofNodes.flat(), ...around, ...events],
  };
}

/** Decisions about these zones and the fleet since `fromMs`. */
async function zoneAndFleetDecisions(asked: Asked, zones: ReadonlySet<string>, fromMs: number): Promise<Step[]> {
  const selectors = ['about.kind=Fleet', ...[...zones].map((zone) => `about.kind=Zone,about.name=${zone}`)];
  const found = await Promise.all(selectors.map((selector) => decisionsOf(asked, selector)));
  return found.flat().filter(({ atMs }) => atMs >= fromMs);
}

const knownDecision = ({ record }: Step): KnownDecision | undefined => record as KnownDecision | undefined;

function evictionNodesOf(step: Step): string[] {
  const decision = knownDecision(step);
  return decision?.rule === 'podEviction' ? [decision.inputs.nodeName] : [];
}

function zonesOf(step: Step): string[] {
  const decision = knownDecision(step);
  return decision?.rule === 'silence' || decision?.rule === 'eviction' ? [decision.inputs.health.zone] : [];
}

async function decisionsOf(asked: Asked, selector: string): Promise<Step[]> {
  const { found, isCut } = await readDecisions(asked, selector);
  if (isCut) throw new CommandError('there are too many decisions', 'name a node, a pod or a zone');
  return found.map(({ name, record }) => stepOf(name, record));
}

const stepOf = (name: string, record: DecisionRecord): Step => ({
  atMs: record.atMs,
  about: record.about.kind === 'Fleet' ? 'fleet' : titleOf(record.about),
  what: record.act,
  reason: record.reason,
  name,
  record,
});

async function eventsOf({ access, send, sinceMs }: Asked, of: DecisionAbout): Promise<Step[]> {
  const namespace = of.namespace ?? 'default';
  const query = new URLSearchParams({ fieldSelector: `involvedObject.kind=${of.kind},involvedObject.name=${of.name}` });
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/events?${query}`;
  const { items } = (await send(access, { method: 'GET', path })) as Listed<EventObject>;
  return items.flatMap((event): Step[] => {
    const atMs = parseTimeMs(event.firstTimestamp ?? event.metadata.creationTimestamp);
    if (atMs === undefined || (parseTimeMs(event.lastTimestamp) ?? atMs) < sinceMs) return [];
    const times = (event.count ?? 1) > 1 ? ` (${event.count} times)` : '';
    return [{ atMs, about: 'event', what: event.reason ?? '', reason: `${event.message ?? ''}${times}` }];
  });
}

/** undefined: the object no longer exists. Its decisions are still stored. */
async function readIfPresent({ access, send }: Asked, path: string): Promise<KubeObject | undefined> {
  try {
    return (await send(access, { method: 'GET', path })) as KubeObject;
  } catch (error) {
    if (error instanceof CommandError && error.message.endsWith('not found')) return undefined;
    throw error;
  }
}

const verified = (step: Step): Step => (step.record === undefined ? step : { ...step, replayed: replay(step.record) });

function* storyLines(
  subject: DecisionAbout,
  { uid, zone, node, state = [] }: Story['facts'],
  steps: readonly Step[],
  sinceMs: number,
): Generator<string> {
  const facts = [
    ...(uid === undefined ? [] : [`uid ${uid}`]),
    ...(zone === undefined || zone === '' ? [] : [`zone ${zone}`]),
    ...(node === undefined ? [] : [`node ${node}`]),
  ];
  yield `${titleOf(subject)}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}, since ${formatTime(sinceMs)}`;
  yield* state;
  const policies = new Set(steps.flatMap(({ record }) => record?.policy ?? []));
  if (policies.size > 0) yield `policy ${[...policies].join(', then ')}`;
  yield '';
  const own = titleOf(subject);
  let previousMs: number | undefined;
  for (const { atMs, about, what, reason, record, replayed } of steps) {
    const delta = previousMs === undefined || atMs - previousMs < 1_000 ? '' : `+${formatAge(atMs - previousMs)}`;
    previousMs = atMs;
    const isEarlier = uid !== undefined && record?.about.uid !== undefined && about === own && record.about.uid !== uid;
    const who = isEarlier ? `an earlier ${own}` : about === own ? '' : about;
    yield [
      formatTime(atMs),
      delta.padStart(7),
      what.padEnd(22),
      who === '' ? reason : `[${who}] ${reason}`,
      ...replayMark(replayed),
    ].join('  ');
    for (const detail of schedulingDetails(record as KnownDecision | undefined)) yield `${DETAIL_INDENT}${detail}`;
  }
}

function replayMark(replayed: Replay | undefined): string[] {
  if (replayed === undefined || !replayed.checked) return [];
  return replayed.same ? ['= same'] : ['≠ DIFFERENT'];
}

/** @throws CommandError when a rule returns another result than the recorded one */
function reportReplays(steps: readonly Step[], print: (line: string) => void): void {
  const checked = steps.filter(({ replayed }) => replayed?.checked === true);
  const different = checked.filter(({ replayed }) => replayed?.same === false);
  const facts = steps.filter(({ replayed }) => replayed?.checked === false).length;
  const beside = facts === 0 ? '' : `; ${facts} without a rule`;
  print('');
  if (different.length === 0) {
    print(`${checked.length} decisions replayed: same outcome${beside}`);
    return;
  }
  for (const { name, replayed } of different) {
    print(`${name}: recorded ${JSON.stringify(replayed?.expected)}, now ${JSON.stringify(replayed?.got)}`);
  }
  throw new CommandError(
    `${different.length} of ${checked.length} decisions have another outcome`,
    'the record was changed, or this version has another rule: see kubectl get decisions.nodekeeper.dev NAME -o yaml',
  );
}
