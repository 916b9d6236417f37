/** What the steps of a story do, as the machines and the operator would: through the API. */

import type { MemoryCloud } from '../demo/ec2/cloud.ts';
import type { CloudTrouble } from '../demo/ec2/planned-failures.ts';
import { defined } from '../shared/defined.ts';
import type { ResourceDescriptor } from '../shared/kinds/descriptor.ts';
import { resources } from '../shared/kinds/registry.ts';
import type { KubeNode, KubeObject, Taint } from '../shared/kinds/types.ts';
import { OPERATOR } from './access.ts';
import { describeTaint, matchesTaint } from './check-expectation.ts';
import { nodeNameOf } from './cluster-view.ts';
import { type Endpoint, type EndpointAnswer, type EndpointRequest, messageOf } from './endpoint.ts';
import type { Fleet } from './fleet.ts';
import { isGlob, matcherOf, pickNames } from './glob.ts';
import type { Machine } from './machine.ts';
import type { ObjectName, Step, StepAction } from './scenario.ts';
import { instanceIdOf } from './simulated-instance.ts';

export interface StepContext {
  readonly endpoint: Endpoint;
  readonly fleet: Fleet;
  readonly nowMs: number;
  readonly cloud: MemoryCloud;
  setControllersDown(down: boolean): void;
  /** The pods of these nodes are evicted now and at each tick, until none is left. */
  drain(names: readonly string[]): void;
}

/** Why a step failed; undefined when it succeeded. */
export type StepFailure = string | undefined;

const DEFAULT_NAMESPACE = 'default';
const MERGE = 'application/merge-patch+json';

type Action<Verb extends StepAction['verb']> = Extract<StepAction, { verb: Verb }>;

const isRefused = ({ status }: EndpointAnswer): boolean => status >= 400;

export async function runStep(step: Exclude<Step, { verb: 'expect' }>, context: StepContext): Promise<StepFailure> {
  const { endpoint, fleet, nowMs } = context;
  switch (step.verb) {
    case 'silence':
      for (const machine of machinesOf(fleet, step.names)) machine.silence();
      return undefined;
    case 'beat':
      return ofMachine(step, await startMachines(step, fleet, nowMs));
    case 'status': {
      const answers: EndpointAnswer[] = [];
      for (const machine of machinesOf(fleet, step.names)) answers.push(await machine.post(nowMs, step.conditions));
      return ofMachine(step, answers);
    }
    case 'apply':
      return asWanted(step, await eachOf(step.objects, (object) => applyObject(endpoint, object)));
    case 'patch':
      return onObjects(step, endpoint, step.target, (path) => ({
        method: 'PATCH',
        path,
        body: step.merge,
        contentType: MERGE,
      }));
    case 'delete': {
      const options = defined({
        gracePeriodSeconds: step.gracePeriodSeconds,
        propagationPolicy: step.propagationPolicy,
      });
      return onObjects(step, endpoint, step.target, (path) => ({
        method: 'DELETE',
        path,
        ...(Object.keys(options).length === 0 ? {} : { body: options }),
      }));
    }
    case 'evict':
      return onObjects(step, endpoint, { kind: 'Pod', name: step.pod, namespace: step.namespace }, (path, name) => ({
        method: 'POST',
        path: `${path}/eviction`,
        body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: step.namespace } },
      }));
    case 'taint':
      return taintNodes(step, endpoint);
    case 'drain':
      context.drain(step.names);
      return setUnschedulable(step, endpoint, true);
    case 'cordon':
      return setUnschedulable(step, endpoint, true);
    case 'uncordon':
      return setUnschedulable(step, endpoint, null);
    case 'controllers':
      context.setControllersDown(step.down);
      return undefined;
    case 'ingest':
      endpoint.failShare = step.failShare;
      return undefined;
    case 'cloud':
      return changeCloud(step, context);
    case 'agentShutdown':
      return 'agentShutdown is reserved for the agent, and not simulated';
  }
}

async function eachOf<T>(things: readonly T[], ask: (thing: T) => Promise<EndpointAnswer>): Promise<EndpointAnswer[]> {
  const answers: EndpointAnswer[] = [];
  for (const thing of things) answers.push(await ask(thing));
  return answers;
}

/** A step of an operator: every request must be accepted, or refused as the step says. */
function asWanted({ refused }: Step, answers: readonly EndpointAnswer[]): StepFailure {
  if (refused === undefined) {
    const refusal = answers.find(isRefused);
    return refusal === undefined ? undefined : `refused: ${messageOf(refusal)}`;
  }
  const other = answers.find(({ status }) => status !== refused);
  if (answers.length === 0) return `wanted a refusal with ${refused}, found no request`;
  return other === undefined ? undefined : `wanted a refusal with ${refused}, found ${messageOf(other)}`;
}

/** A machine's own request may fail; that is its story, unless the step says how it is refused. */
const ofMachine = (step: Step, answers: readonly EndpointAnswer[]): StepFailure =>
  step.refused === undefined ? undefined : asWanted(step, answers);

/** What EC2 says from now on; the machines go on as before. */
function changeCloud({ change }: Action<'cloud'>, { cloud, fleet }: StepContext): StepFailure {
  if (change.kind === 'error') {
    cloud.fail(change.error === undefined ? null : troubleOf(change.error));
    return undefined;
  }
  const machines = machinesOf(fleet, change.nodes);
  const without = machines.find(({ spec }) => !spec.hasInstance);
  if (without !== undefined) return `${without.spec.name} has no instance: its fleet entry lacks providerID: true`;
  for (const { spec } of machines) {
    const outcome = cloud[change.say](instanceIdOf(spec));
    // The instance may already be in the state that the step sets.
    const isSo = (change.say === 'vanish' && outcome === 'unknown') || change.say === 'terminate';
    if (outcome !== 'done' && !isSo) return `EC2 cannot ${change.say} the instance of ${spec.name}: ${outcome}`;
  }
  return undefined;
}

/** EC2's name of an error as the trouble it stands for. */
function troubleOf(error: string): CloudTrouble {
  if (/throttl|RequestLimitExceeded|RequestThrottled/i.test(error)) return 'Throttling';
  return /time.?out/i.test(error) ? 'timeout' : 'InternalError';
}

function machinesOf(fleet: Fleet, names: readonly string[]): Machine[] {
  return pickNames(names, [...fleet.machines.keys()]).map((name) => fleet.machines.get(name)!);
}

async function startMachines(step: Action<'beat'>, fleet: Fleet, nowMs: number): Promise<EndpointAnswer[]> {
  const machines = step.machines.flatMap((wanted): Machine[] => {
    if (typeof wanted !== 'string') return [fleet.machines.get(wanted.name) ?? fleet.join(wanted)];
    const known = machinesOf(fleet, [wanted]);
    if (known.length > 0 || isGlob(wanted)) return known;
    return [
      fleet.join({
        name: wanted,
        labels: {},
        taints: [],
        podCount: 0,
        hasInstance: false,
        beating: true,
        ageMs: 0,
        clockOffsetMs: 0,
        beatEveryMs: NEW_MACHINE_BEAT_EVERY_MS,
        phaseMs: 0,
      }),
    ];
  });
  return eachOf([...new Set(machines)], (machine) => fleet.start(machine, nowMs));
}
const NEW_MACHINE_BEAT_EVERY_MS = 10_000;

function descriptorOf(kind: string): ResourceDescriptor | undefined {
  const wanted = kind.toLowerCase();
  return resources.find(
    (each) =>
      each.servedFrom === undefined &&
      [each.kind.toLowerCase(), each.resource, each.singular, ...each.shortNames].includes(wanted),
  );
}

function collectionPath({ group, version, resource, namespaced }: ResourceDescriptor, namespace: string): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const place = namespaced ? `/namespaces/${namespace === '' ? DEFAULT_NAMESPACE : namespace}` : '';
  return `${root}${place}/${resource}`;
}

async function applyObject(endpoint: Endpoint, object: KubeObject): Promise<EndpointAnswer> {
  const descriptor = descriptorOf(object.kind ?? '');
  if (descriptor === undefined) return { status: 404, body: { message: `no resource of kind ${object.kind}` } };
  const { name = '', namespace = '' } = object.metadata;
  const collection = collectionPath(descriptor, namespace);
  const path = `${collection}/${name}`;
  const ask = (request: Omit<EndpointRequest, 'who'>) => endpoint.send({ who: OPERATOR, ...request });
  const found = await ask({ method: 'GET', path });
  if (isRefused(found) && found.status !== 404) return found;
  const stored = found.body as KubeObject;
  const { status, ...spec } = object;
  // Conditions of a Node come with its creation; the status of a Pod only afterwards.
  const isPod = descriptor.resource === 'pods';
  const written =
    found.status === 404
      ? await ask({ method: 'POST', path: collection, body: isPod ? spec : object })
      : await ask({
          method: 'PUT',
          path,
          body: { ...object, metadata: { resourceVersion: stored.metadata.resourceVersion, ...object.metadata } },
        });
  if (!isPod || status === undefined || isRefused(written)) return written;
  return ask({ method: 'PATCH', path: `${path}/status`, body: { status }, contentType: MERGE });
}

/** The same request for each object that a name or glob picks. */
async function onObjects(
  step: Step,
  endpoint: Endpoint,
  { kind, name, namespace }: ObjectName,
  request: (path: string, name: string) => Omit<EndpointRequest, 'who'>,
): Promise<StepFailure> {
  const descriptor = descriptorOf(kind);
  if (descriptor === undefined) return `no resource of kind ${kind}`;
  const collection = collectionPath(descriptor, namespace);
  let names = [name];
  if (isGlob(name)) {
    const listed = await endpoint.send({ who: OPERATOR, method: 'GET', path: collection });
    if (isRefused(listed)) return asWanted(step, [listed]);
    const matches = matcherOf(name);
    names = (listed.body as { items: KubeObject[] }).items.flatMap(({ metadata }) =>
      matches(metadata.name ?? '') ? [metadata.name ?? ''] : [],
    );
    if (names.length === 0) return `${name} matches no ${kind}`;
  }
  const answers = await eachOf(names, (each) =>
    endpoint.send({ who: OPERATOR, ...request(`${collection}/${each}`, each) }),
  );
  return asWanted(step, answers);
}

const setUnschedulable = (
  step: Step & { readonly names: readonly string[] },
  endpoint: Endpoint,
  unschedulable: true | null,
): Promise<StepFailure> =>
  onNodes(step, endpoint, step.names, (path) => ({
    method: 'PATCH',
    path,
    body: { spec: { unschedulable } },
    contentType: MERGE,
  }));

/**
 * Evicts the pods of some nodes, as `kubectl drain --ignore-daemonsets` does. An eviction that a budget refuses is
 * tried again by the next call. Returns names of nodes with pods that are left.
 */
export async function evictPods(endpoint: Endpoint, patterns: readonly string[]): Promise<readonly string[]> {
  const listed = await endpoint.send({ who: OPERATOR, method: 'GET', path: '/api/v1/pods' });
  if (isRefused(listed)) return patterns;
  const left = new Set<string>();
  for (const pod of (listed.body as { items: KubeObject[] }).items) {
    const { name = '', namespace = '', deletionTimestamp, ownerReferences = [] } = pod.metadata;
    const nodeName = nodeNameOf(pod);
    if (nodeName === '' || pickNames(patterns, [nodeName]).length === 0) continue;
    if (ownerReferences.some(({ kind }) => kind === 'DaemonSet')) continue;
    left.add(nodeName);
    if (deletionTimestamp !== undefined) continue;
    await endpoint.send({
      who: OPERATOR,
      method: 'POST',
      path: `/api/v1/namespaces/${namespace}/pods/${name}/eviction`,
      body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } },
    });
  }
  return [...left];
}

async function onNodes(
  step: Step,
  endpoint: Endpoint,
  names: readonly string[],
  request: (path: string) => Omit<EndpointRequest, 'who'>,
): Promise<StepFailure> {
  for (const name of names) {
    const failure = await onObjects(step, endpoint, { kind: 'Node', name, namespace: '' }, request);
    if (failure !== undefined) return failure;
  }
  return undefined;
}

/** The steps are kubectl's: read the Node, change the list, write it back unless another client was faster. */
async function taintNodes(step: Action<'taint'> & Step, endpoint: Endpoint): Promise<StepFailure> {
  const listed = await endpoint.send({ who: OPERATOR, method: 'GET', path: '/api/v1/nodes' });
  if (isRefused(listed)) return asWanted(step, [listed]);
  const nodes = (listed.body as { items: KubeNode[] }).items;
  const picked = pickNames(
    step.names,
    nodes.map(({ metadata }) => metadata.name ?? ''),
  );
  if (picked.length === 0) return `${step.names.join(', ')} matches no Node`;
  const missing = step.remove.filter(
    (pattern) =>
      !nodes.some(
        (node) =>
          picked.includes(node.metadata.name ?? '') &&
          (node.spec?.taints ?? []).some((taint) => matchesTaint(pattern, taint)),
      ),
  );
  if (missing[0] !== undefined) return `taint ${describeTaint(missing[0])} not found`;
  const answers = await eachOf(picked, (name) => {
    const node = nodes.find(({ metadata }) => metadata.name === name)!;
    const kept = (node.spec?.taints ?? []).filter(
      (taint) =>
        !step.remove.some((pattern) => matchesTaint(pattern, taint)) &&
        !step.add.some(({ key, effect }) => key === taint.key && effect === taint.effect),
    );
    const taints: readonly Taint[] = [...kept, ...step.add];
    return endpoint.send({
      who: OPERATOR,
      method: 'PATCH',
      path: `/api/v1/nodes/${name}`,
      body: { metadata: { resourceVersion: node.metadata.resourceVersion }, spec: { taints } },
      contentType: MERGE,
    });
  });
  return asWanted(step, answers);
}

const joinNames = (names: readonly string[]): string => names.join(', ');

/** The step in a line. */
export function describeStep(step: Step): string {
  switch (step.verb) {
    case 'silence':
    case 'cordon':
    case 'uncordon':
    case 'drain':
      return `${step.verb} ${joinNames(step.names)}`;
    case 'beat':
      return `beat ${step.machines.map((machine) => (typeof machine === 'string' ? machine : machine.name)).join(', ')}`;
    case 'status': {
      const said = Object.entries(step.conditions).map(([type, status]) => `${type}=${status}`);
      return `status ${joinNames(step.names)}: ${said.join(', ')}`;
    }
    case 'apply':
      return `apply ${step.objects.map(({ kind, metadata }) => `${kind} ${metadata?.name ?? ''}`).join(', ')}`;
    case 'patch':
    case 'delete':
      return `${step.verb} ${step.target.kind} ${step.target.name}`;
    case 'evict':
      return `evict ${step.namespace}/${step.pod}`;
    case 'taint': {
      const changes = [
        ...step.add.map((taint) => `+${describeTaint(taint)}`),
        ...step.remove.map((taint) => `-${describeTaint(taint)}`),
      ];
      return `taint ${joinNames(step.names)}: ${changes.join(' ')}`;
    }
    case 'cloud':
      return step.change.kind === 'error'
        ? `cloud error ${step.change.error ?? 'over'}`
        : `cloud ${step.change.say} ${joinNames(step.change.nodes)}`;
    case 'controllers':
      return step.down ? 'controllers go down' : 'controllers run again';
    case 'ingest':
      return step.failShare === 0
        ? 'ingest works again'
        : `ingest fails for ${Math.round(step.failShare * 100)} % of requests`;
    case 'agentShutdown':
      return 'agentShutdown';
    case 'expect':
      return 'expect';
  }
}
