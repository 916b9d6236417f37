import { describe, expect, it } from 'vitest';
import { type GateRecord, UNTRIED_GATE } from '../../shared/fleet/gate.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { KubeNode, KubePod } from '../../shared/kinds/types.ts';
import { Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import { schedulableNode, schedulablePod } from '../../shared/scheduling/world.rule.ts';
import { replayed } from '../../test/support/replayed.ts';
import {
  heldDraft,
  placementDraft,
  preemptionDraft,
  rejectionDraft,
  schedulerReplay,
  victimDraft,
  withPreemption,
} from './decisions.ts';
import type { Candidate } from './preemption.rule.ts';
import type { Fit, NoFit, ScoredNode } from './rule.ts';

const NOW_MS = 50_000;
const queue = { queuedAtMs: 20_000, attempt: 3 };
const ABOUT = { kind: 'Pod', namespace: 'web', name: 'p', uid: 'uid-p' };

function pod(name: string, requests: Record<string, string> = {}, priority = 0, startTime?: string) {
  const status = startTime === undefined ? {} : { startTime };
  const spec = { priority, containers: [{ name: 'c', resources: { requests } }] };
  return schedulablePod({ metadata: { name, namespace: 'web', uid: `uid-${name}` }, spec, status } as KubePod);
}

const rejection = (plugin: string, ...reasons: string[]) => ({ plugin, reasons, isResolvable: true });
const rejectionsOf = (of: Record<string, ReturnType<typeof rejection>>) =>
  new Map(Object.entries(of)) as unknown as NoFit['rejections'];

describe('the record of a binding', () => {
  const scored = (nodeName: string, total: number): ScoredNode =>
    ({ nodeName, total, scores: { NodeResourcesFit: total } }) as unknown as ScoredNode;
  const fitOf = (over: Partial<Fit>): Fit =>
    ({
      kind: 'fit',
      nodeName: 'n2',
      best: [scored('n2', 9), scored('n1', 4)],
      examined: 5,
      feasible: 2,
      rejections: rejectionsOf({ a: rejection('P', 'full', 'cold'), b: rejection('P', 'full') }),
      ...over,
    }) as Fit;

  it('has the best nodes with their scores and the counts of the others', () => {
    const draft = placementDraft(pod('p'), fitOf({}), { nowMs: NOW_MS, nodes: 6, queue });
    expect(draft).toEqual({
      act: 'PodScheduled',
      about: ABOUT,
      atMs: NOW_MS,
      reason: 'bound to n2: 2 of 5 examined nodes are feasible; best scores: n2 9, n1 4',
      rule: 'podPlacement',
      inputs: {
        podUid: 'uid-p',
        best: [
          { nodeName: 'n2', scores: { NodeResourcesFit: 9 } },
          { nodeName: 'n1', scores: { NodeResourcesFit: 4 } },
        ],
        nodeName: 'n2',
        nodes: 6,
        examined: 5,
        feasible: 2,
        rejected: { full: 2, cold: 1 },
        waitedMs: 30_000,
        attempt: 3,
      },
      outcome: { nodeName: 'n2' },
    });
    expect(replayed(draft, schedulerReplay)).toEqual({ nodeName: 'n2' });
  });

  it('replays to the best of the recorded scores', () => {
    const best = [scored('n1', 4), scored('n3', 11)];
    const draft = placementDraft(pod('p'), fitOf({ best }), { nowMs: NOW_MS, nodes: 6, queue });
    expect(replayed(draft, schedulerReplay)).toEqual({ nodeName: 'n3' });
  });

  it('of a pod with a clock ahead has not waited, and a node without a score stays', () => {
    const draft = placementDraft(pod('p'), fitOf({ best: [], feasible: 1 }), {
      nowMs: NOW_MS,
      nodes: 6,
      queue: { queuedAtMs: NOW_MS + 1, attempt: 1 },
    });
    expect(draft.reason).toBe('bound to n2: 1 of 5 examined nodes is feasible');
    expect(draft.inputs).toMatchObject({ best: [], waitedMs: 0, attempt: 1 });
    expect(replayed(draft, schedulerReplay)).toEqual({ nodeName: 'n2' });
  });
});

describe('the record of a pod that fits nowhere', () => {
  const node = (name: string, cpu: string, extra: Record<string, string> = {}) => {
    const status = { allocatable: { cpu, memory: '4Gi', 'ephemeral-storage': '1Gi', pods: '10', ...extra } };
    return schedulableNode({ metadata: { name, uid: name }, status } as KubeNode);
  };
  const snapshotOf = (...nodes: ReturnType<typeof node>[]) => {
    const snapshot = new Snapshot();
    for (const each of nodes) snapshot.setNode(each);
    return snapshot;
  };
  const at = (nodes: Snapshot['nodes'], message: string) => ({ nowMs: NOW_MS, nodes, message, preemption: '', queue });
  const noFit = (rejections: NoFit['rejections'], message = ''): NoFit => ({
    kind: 'rejected',
    message,
    rejections,
    plugins: [],
  });

  it('has the reasons by count, three nodes of each, and the node with most of what is short', () => {
    const snapshot = snapshotOf(node('n1', '2'), node('n2', '2'), node('n3', '3'), node('n4', '3500m'));
    const bound = pod('bound', { cpu: '2' });
    snapshot.setPod({ ...bound, nodeName: 'n3' });
    const { nodes } = snapshot;
    const full = rejection('NodeResourcesFit', 'Insufficient cpu');
    const tainted = rejection('TaintToleration', 'node(s) had untolerated taint {a: }', 'Insufficient cpu');
    const rejections = rejectionsOf({ n1: full, n2: full, n3: full, n4: tainted, gone: full });
    const message = '0/4 nodes are available: 1 node(s) had untolerated taint {a: }, 5 Insufficient cpu.';
    const draft = rejectionDraft(pod('p', { cpu: '4', memory: '1Gi' }), noFit(rejections, message), at(nodes, message));
    expect(draft).toEqual({
      act: 'PodUnschedulable',
      about: ABOUT,
      atMs: NOW_MS,
      reason: message,
      rule: 'podRejection',
      inputs: {
        nodes: 4,
        rejected: { 'Insufficient cpu': 5, 'node(s) had untolerated taint {a: }': 1 },
        preemption: '',
        examples: { 'Insufficient cpu': ['n1', 'n2', 'n3'], 'node(s) had untolerated taint {a: }': ['n4'] },
        shortages: [{ nodeName: 'n1', name: 'cpu', requested: 4_000, allocatable: 2_000, used: 0 }],
        waitedMs: 30_000,
        attempt: 3,
      },
      outcome: { message },
    });
    expect('ofPod' in draft.inputs).toBe(false);
    expect(replayed(draft, schedulerReplay)).toEqual({ message });
  });

  it('has four resources that are short, and none that fits exactly', () => {
    const { nodes } = snapshotOf(node('n1', '1', { 'x/a': '0', 'x/b': '1', 'x/c': '5' }));
    const requests = { cpu: '2', memory: '8Gi', 'ephemeral-storage': '2Gi', 'x/a': '1', 'x/b': '2', 'x/c': '5' };
    const rejections = rejectionsOf({ n1: rejection('NodeResourcesFit', 'Insufficient cpu') });
    const names = (wanted: Record<string, string>) => {
      const { inputs } = rejectionDraft(pod('p', wanted), noFit(rejections), at(nodes, ''));
      return (inputs as { shortages?: { name: string }[] }).shortages?.map(({ name }) => name);
    };
    expect(names(requests)).toEqual(['cpu', 'memory', 'ephemeral-storage', 'x/a']);
    expect(names({ 'x/b': '2', 'x/c': '5' })).toEqual(['x/b']);
    expect(names({ cpu: '1' })).toBeUndefined();
  });

  it('counts what other pods use of a resource', () => {
    const snapshot = snapshotOf(node('n1', '3'));
    snapshot.setPod({ ...pod('bound', { cpu: '2' }), nodeName: 'n1' });
    const rejections = rejectionsOf({ n1: rejection('NodeResourcesFit', 'Insufficient cpu') });
    const { inputs } = rejectionDraft(pod('p', { cpu: '2' }), noFit(rejections), at(snapshot.nodes, ''));
    expect(inputs).toMatchObject({ shortages: [{ name: 'cpu', requested: 2_000, allocatable: 3_000, used: 2_000 }] });
  });

  it.each([
    ['no node', 0, 'no nodes available to schedule pods', undefined],
    ['the pod itself', 1, 'dynamic resource claims are not supported', 'dynamic resource claims are not supported'],
  ])('for %s has the message of the pod, and replays with what preemption says', (_name, count, message, ofPod) => {
    const { nodes } = snapshotOf(...(count === 0 ? [] : [node('n1', '1')]));
    const preemption = 'not helpful';
    const whole = withPreemption(message, preemption);
    const draft = rejectionDraft(pod('p'), noFit(rejectionsOf({}), message), { ...at(nodes, whole), preemption });
    expect(draft.inputs).toMatchObject({
      nodes: count,
      ofPod: ofPod ?? message,
      preemption,
      examples: {},
      rejected: {},
    });
    expect(whole).toBe(`${message} preemption: not helpful`);
    expect(replayed(draft, schedulerReplay)).toEqual({ message: whole });
    const { ofPod: _left, ...inputs } = draft.inputs as { ofPod?: string };
    const older = { ...draft, inputs } as unknown as typeof draft;
    expect(replayed(older, schedulerReplay)).toEqual({
      message: withPreemption(count === 0 ? message : '0/1 nodes are available:', preemption),
    });
  });
});

describe('the record of a preemption', () => {
  const candidate = (nodeName: string, count: number): Candidate => ({
    nodeName,
    violations: 0,
    victims: Array.from({ length: count }, (_, index) =>
      pod(`v${index}`, {}, 1, index === 0 ? undefined : '1970-01-01T00:00:01Z'),
    ),
  });

  it('has the chosen node first, five candidates, and twenty victims of each', () => {
    const chosen = candidate('n3', 21);
    const candidates = [
      ...[1, 2].map((n) => candidate(`n${n}`, 22)),
      chosen,
      ...[4, 5, 6].map((n) => candidate(`n${n}`, 22)),
    ];
    const draft = preemptionDraft(pod('p', {}, 7), { chosen, candidates }, NOW_MS);
    const inputs = draft.inputs as { podUid: string; candidates: { nodeName: string; victims: object[] }[] };
    expect(inputs.podUid).toBe('uid-p');
    expect(inputs.candidates.map(({ nodeName }) => nodeName)).toEqual(['n3', 'n1', 'n2', 'n4', 'n5']);
    expect(inputs.candidates.map(({ victims }) => victims.length)).toEqual([20, 20, 20, 20, 20]);
    expect(inputs.candidates[0]?.victims.slice(0, 2)).toEqual([
      { key: 'web/v0', priority: 1 },
      { key: 'web/v1', priority: 1, startedAtMs: 1_000 },
    ]);
    const names = Array.from({ length: 20 }, (_, index) => `web/v${index}`).join(', ');
    expect(draft.reason).toBe(`nominated to n3: 21 pods of lower priority are deleted (${names})`);
    expect(draft).toMatchObject({
      act: 'PodPreempting',
      about: ABOUT,
      atMs: NOW_MS,
      rule: 'podPreemption',
      outcome: { nodeName: 'n3' },
    });
  });

  it('replays to the candidate with the fewest victims', () => {
    const chosen = candidate('n2', 1);
    const draft = preemptionDraft(pod('p', {}, 7), { chosen, candidates: [candidate('n1', 2), chosen] }, NOW_MS);
    expect(replayed(draft, schedulerReplay)).toEqual({ nodeName: 'n2' });
  });

  it('names the pod, its node and both priorities at the victim', () => {
    const preemptor = pod('p', {}, 7);
    expect(victimDraft(pod('v', {}, 1), { preemptor, nodeName: 'n1', nowMs: NOW_MS })).toEqual({
      act: 'PodPreempted',
      about: { kind: 'Pod', namespace: 'web', name: 'v', uid: 'uid-v' },
      atMs: NOW_MS,
      reason: 'deleted for pod web/p of priority 7 on node n1; own priority 1',
      rule: 'fact',
      inputs: { by: 'uid-p', nodeName: 'n1' },
      outcome: {},
    });
  });
});

describe('the record of a restricted scheduler', () => {
  it.each<[string, Partial<GateRecord>, string]>([
    ['a stored reason', { reasons: ['failingPath'], lastTickAtMs: NOW_MS }, ''],
    ['missed ticks', { lastTickAtMs: 0 }, 'node-monitor missed ticks'],
  ])('for %s has what the rule of the gate read, and replays', (_name, over, text) => {
    const gate = { ...UNTRIED_GATE, ...over };
    const nowMs = 600_000;
    const draft = heldDraft(gate, { nowMs, policy: defaultPolicy, nodes: 9, recent: 2 });
    expect(draft).toEqual({
      act: 'SchedulingHeld',
      about: { kind: 'Fleet', name: 'fleet' },
      atMs: nowMs,
      reason: expect.stringContaining(`safety gate closed: ${text}`),
      rule: 'schedulingGate',
      inputs: {
        reasons: gate.reasons,
        lastTickAtMs: gate.lastTickAtMs,
        policy: {
          tickGate: defaultPolicy.tickGate,
          nodeMonitorPeriodSeconds: 5,
          nodeMonitorGracePeriodSeconds: 40,
        },
        nodes: 9,
        recent: 2,
      },
      outcome: { held: true },
    });
    expect(draft.reason).toContain('; pods are bound only to the 2 of 9 nodes with a recent heartbeat, and no pod is');
    expect(replayed(draft, schedulerReplay)).toEqual({ held: true });
    const open = { ...draft, inputs: { ...draft.inputs, reasons: [], lastTickAtMs: nowMs } } as typeof draft;
    expect(replayed(open, schedulerReplay)).toEqual({ held: false });
  });

  it('replays by the shortest grace period of all profiles', () => {
    const fast = { name: 'fast', nodeSelector: {}, nodeMonitorGracePeriodSeconds: 20 };
    const at = { nowMs: 15_000, policy: { ...defaultPolicy, profiles: [fast] }, nodes: 9, recent: 2 };
    expect(replayed(heldDraft({ ...UNTRIED_GATE, lastTickAtMs: 0 }, at), schedulerReplay)).toEqual({ held: true });
  });
});
