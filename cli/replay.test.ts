import { describe, expect, it } from 'vitest';
import { cloudDraft, outOfServiceDraft } from '../functions/cloud-node/decisions.ts';
import { podGcDraft } from '../functions/pod-gc/decisions.ts';
import { detachDraft, volumeKeptDraft } from '../functions/pod-gc/volumes/decisions.ts';
import { type AttachedVolume, decideVolumeDetach, type VolumeNode } from '../functions/pod-gc/volumes/rule.ts';
import { type DecisionDraft, type DecisionRecord, sealed } from '../shared/decisions/decision-record.ts';
import { decidePodEvictions } from '../shared/fleet/eviction.rule.ts';
import { podEvictionDraft } from '../shared/fleet/eviction-decisions.ts';
import type { NodeSigns } from '../shared/fleet/eviction-time.rule.ts';
import { decideGate, UNTRIED_GATE } from '../shared/fleet/gate.ts';
import type { CloudAnswer } from '../shared/fleet/instances/instance.ts';
import { type CloudQuestion, decideCloud } from '../shared/fleet/instances/rule.ts';
import { gateDraft } from '../shared/fleet/mark-decisions.ts';
import { TAINT_UNREACHABLE } from '../shared/fleet/nodes/taint.ts';
import { swapDraft } from '../shared/fleet/nodes/taint-decisions.ts';
import { defaultPolicy } from '../shared/fleet/policy.ts';
import { type CollectablePod, podRemovals } from '../shared/kinds/pods/collection.rule.ts';
import { aPod, aTaint, tolerating } from '../test/support/eviction-world.ts';
import { aNode } from '../test/support/ruled-fleet.ts';
import { replay } from './replay.ts';

const NOW = 1_000_000;
const NODE = { nodeName: 'n1', uid: 'u1' };

/** The record as a store returns it. */
const stored = (draft: DecisionDraft): DecisionRecord =>
  JSON.parse(JSON.stringify(sealed({ ...draft, v: 1, policy: 'p' }))) as DecisionRecord;

function expectSame(draft: DecisionDraft): DecisionRecord {
  const record = stored(draft);
  expect(replay(record)).toMatchObject({ same: true, checked: true, expected: record.outcome });
  return record;
}

/** A terminating pod that its machine stopped at 300 s + 700 s. */
const stopping = (signs: Partial<NodeSigns>) => ({
  pods: [aPod('p', [], { terminating: true, offlineStopMs: 700_000 })],
  signs: { createdAtMs: 0, renewedAtMs: 300_000, ...signs },
});

describe('a recorded decision replays to the same outcome', () => {
  const question = (answer: CloudAnswer, more: Partial<CloudQuestion> = {}) => ({
    ...NODE,
    ready: 'Unknown' as const,
    answer,
    memory: {},
    createdAtMs: 0,
    hasShutdownTaint: false,
    ...more,
  });

  it.each<[string, CloudAnswer, Partial<CloudQuestion>, string, string]>([
    [
      'an error',
      { kind: 'failed', cause: 'error', message: 'boom' },
      {},
      'NodeKept',
      'EC2 request failed (error: boom): the Node is kept, and EC2 is asked again',
    ],
    ['foreign', { kind: 'foreign', reason: 'another region' }, {}, 'NodeKept', 'another region: the Node is kept'],
    ['no instance', { kind: 'notEc2', reason: 'no providerID' }, {}, 'NodeKept', 'no providerID: the Node is kept'],
    [
      'unknown and young',
      { kind: 'notFound' },
      { createdAtMs: NOW - 1_000 },
      'NodeKept',
      'EC2 does not know the instance, which may be too young: the Node is kept, and EC2 is asked again',
    ],
    [
      'unknown twice',
      { kind: 'notFound' },
      { memory: { notFoundSinceMs: NOW - 5_000 } },
      'NodeDeleted',
      'EC2 did not know the instance twice in a row: the Node is deleted',
    ],
    [
      'stopped',
      { kind: 'found', state: 'stopped', launchedAtMs: 0 },
      {},
      'ShutdownTaintAdded',
      'EC2 instance state stopped: the shutdown taint is added',
    ],
    [
      'Ready again',
      { kind: 'found', state: 'stopped', launchedAtMs: undefined },
      { ready: 'True', hasShutdownTaint: true },
      'ShutdownTaintRemoved',
      'node is Ready: the shutdown taint is removed',
    ],
    [
      'without a Ready condition',
      { kind: 'found', state: 'running', launchedAtMs: undefined },
      { ready: undefined },
      'NodeKept',
      'EC2 instance state running: the Node is kept',
    ],
  ])('of EC2: %s', (_what, answer, more, act, reason) => {
    const asked = question(answer, more);
    const { decision } = decideCloud(asked, NOW, defaultPolicy);
    expect(expectSame(cloudDraft(decision, asked, NOW, defaultPolicy))).toMatchObject({ act, reason });
  });

  it('of removing the taints of a node', () => {
    const asked = { ready: 'True', answer: { kind: 'notFound' }, memory: {}, outOfServiceTaint: 'ours' } as const;
    const of = { ...NODE, nowMs: NOW, policy: defaultPolicy };
    expect(expectSame(outOfServiceDraft('remove', of, asked)).act).toBe('OutOfServiceRemoved');
  });

  it.each<[string, Partial<AttachedVolume>, Partial<VolumeNode>, string | undefined, string]>([
    [
      'dead for long',
      { mounted: true },
      {},
      undefined,
      'VolumeDetached volume vol-1: node has been unhealthy for longer than the timeout, force detach',
    ],
    [
      'while the safety gate is closed',
      { mounted: true },
      {},
      'the safety gate is closed',
      'VolumeKept volume vol-1: mounted; the safety gate is closed',
    ],
    ['not tagged', { tagged: false }, {}, undefined, 'VolumeKept volume vol-1: volume does not carry our tag'],
    [
      'a deleted Node',
      { mounted: false },
      { ready: undefined, instance: 'terminated' },
      undefined,
      'VolumeDetached volume vol-1: not mounted',
    ],
  ])('of a volume: %s', (_what, ofVolume, ofNode, doubt, told) => {
    const volume: AttachedVolume = {
      volumeId: 'vol-1',
      mounted: true,
      detachRequestedAtMs: NOW - 400_000,
      tagged: true,
      isRootDevice: false,
      managedByAws: false,
      attachedTo: 'i-1',
      ...ofVolume,
    };
    const node: VolumeNode = {
      ready: 'Unknown',
      outOfService: false,
      instanceId: 'i-1',
      instance: 'stopped',
      ...ofNode,
    };
    const asked = { volume, node, doubt };
    const decision = decideVolumeDetach(asked, NOW, defaultPolicy);
    const { act, reason } = expectSame(detachDraft({ ...NODE, nowMs: NOW, policy: defaultPolicy }, decision, asked));
    expect(`${act} ${reason}`).toBe(told);
  });

  it.each([
    [
      'held while the gate holds',
      { gate: { kind: 'holding', reasons: ['failingPath'], sinceMs: 1 } as const },
      'PodEvictionHeld',
    ],
    ['deleted', {}, 'PodDeleted'],
    ['dropped with its node', { taints: undefined, pods: [] }, 'PodEvictionCancelled'],
    ['moved', { pods: [aPod('p', [tolerating(TAINT_UNREACHABLE, 2_000)])] }, 'PodEvictionMoved'],
    ['spared', { taints: [] }, 'PodEvictionCancelled'],
    ['removed when its silent machine has stopped it', stopping({ ready: 'Unknown' }), 'PodRemoved'],
    ['not removed after a later heartbeat', stopping({ ready: 'Unknown', renewedAtMs: 400_000 }), 'PodEvictionMoved'],
    ['left to its machine, which is Ready again', stopping({ ready: 'True' }), 'PodEvictionCancelled'],
  ])('of a pod that is %s', (_what, more, act) => {
    const timer = { namespace: 'default', name: 'p', podUid: 'uid-p', atMs: NOW };
    const world = {
      nodeName: 'node1',
      taints: [aTaint(TAINT_UNREACHABLE, 700)],
      pods: [aPod('p', [tolerating(TAINT_UNREACHABLE, 300)])],
      timers: act === 'PodEvictionHeld' ? [] : [timer],
      gate: { kind: 'open' } as const,
      freshSinceMs: 0,
      ...more,
    };
    const [decision] = decidePodEvictions(world, NOW, defaultPolicy);
    const of = { ...world, pod: world.pods[0], timer: world.timers[0] };
    expect(expectSame(podEvictionDraft(decision!, of, NOW, defaultPolicy)).act).toBe(act);
  });

  it('of pods that are deleted, each for its own reason', () => {
    const pod: CollectablePod = {
      namespace: 'default',
      name: 'p',
      uid: 'u',
      nodeName: undefined,
      phase: 'Succeeded',
      reason: undefined,
      createdAtMs: 1,
      terminating: false,
    };
    const node = {
      name: 'n1',
      ready: undefined,
      taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }],
    } as const;
    const policy = { ...defaultPolicy, terminatedPodGcThreshold: 1 };
    const cases = [
      ['terminated', pod, 2],
      ['unscheduled', { ...pod, phase: 'Running', terminating: true }, 0],
      ['orphaned', { ...pod, phase: undefined, nodeName: 'gone' }, 0],
      ['out-of-service', { ...pod, phase: 'Running', nodeName: 'n1', terminating: true }, 0],
    ] as const;
    for (const [reason, each, othersEnded] of cases) {
      const others = Array.from({ length: othersEnded }, (_, index) => ({
        ...pod,
        uid: `o${index}`,
        createdAtMs: 2 + index,
      }));
      const world = { pods: [each, ...others], nodes: [node], missing: new Set(['gone']) };
      const removal = podRemovals(world, policy).find(({ podUid }) => podUid === 'u')!;
      expect(removal.reason).toBe(reason);
      expectSame(podGcDraft(removal, { pod: each, node, othersEnded }, NOW, policy));
    }
  });

  it('of the safety gate, with its probes', () => {
    const probes = [{ sentAtMs: NOW, accepted: false }];
    const after = decideGate(UNTRIED_GATE, { nowMs: NOW, probes, policy: defaultPolicy });
    const note = gateDraft(UNTRIED_GATE, after, { nowMs: NOW, probes, policy: defaultPolicy, withheldMarks: 3 });
    expect(expectSame(note).reason).toContain('heartbeat path not proven healthy');
  });
});

describe('replay', () => {
  const { ready, noExecute } = aNode({
    nodeName: 'n1',
    ready: 'Unknown',
    noExecute: { notReady: true, unreachable: false },
  });
  const record = stored(swapDraft({ ...NODE, nowMs: NOW, ready, noExecute }, 'notReady', 'unreachable'));

  it('detects a changed record by its sum, and a re-sealed one by its rule', () => {
    expect(replay(record).same).toBe(true);
    const changed = { ...record, reason: 'another' };
    expect(replay(changed)).toMatchObject({ same: false, got: { why: 'the record was changed after it was written' } });
    const { sum: _, ...rest } = { ...record, outcome: { from: 'unreachable', to: 'notReady' } };
    expect(replay(sealed(rest as Omit<DecisionRecord, 'sum'>))).toMatchObject({
      same: false,
      expected: { from: 'unreachable' },
      got: { from: 'notReady', to: 'unreachable' },
    });
  });

  it.each([
    ['of a later version', { v: 2 }, 'version 2 is not known'],
    ['of an unknown rule', { rule: 'toString' }, 'rule toString is not known'],
    ['with inputs that cannot be read', { rule: 'cloud', inputs: {} }, ''],
  ])('reports a record %s as a difference, not as an error', (_what, change, why) => {
    const { sum: _, ...rest } = { ...record, ...change };
    const outcome = replay(sealed(rest as unknown as Omit<DecisionRecord, 'sum'>));
    expect(outcome).toMatchObject({ same: false, got: { kind: 'unreadable' } });
    expect(outcome.got['why']).toContain(why);
  });

  it('has no rule to run for a fact', () => {
    const fact = stored(
      volumeKeptDraft({ ...NODE, nowMs: NOW, policy: defaultPolicy }, 'vol-1', 'EC2 refuses: IncorrectState'),
    );
    expect(replay(fact)).toMatchObject({ same: true, checked: false });
  });
});

describe('a record of an earlier version', () => {
  const draft = cloudDecisionOfEarlierVersion();

  it('replays to the same outcome although its text was worded differently', () => {
    expect(replay(stored(draft))).toMatchObject({ same: true, expected: { why: 'worded as before' } });
  });

  it.each<[string, Partial<VolumeNode>, Partial<typeof defaultPolicy>]>([
    ['mounted; time is not over', {}, { forceDetachTimeoutSeconds: 2_000 }],
    ['mounted; detaching on timeout is switched off', {}, { disableForceDetachOnTimeout: true }],
    ['mounted; worded as before', { instance: 'unknown' }, {}],
    ['node is unhealthy for too long', { instance: 'stopped' }, {}],
  ])('of a volume replays although its text was: %s', (reason, node, policy) => {
    const volume = {
      volumeId: 'vol-1',
      wanted: false,
      mounted: true,
      detachRequestedAtMs: 0,
      tagged: true,
      isRootDevice: false,
      managedByAws: false,
      attachedTo: 'i-1',
    };
    const question = {
      volume,
      node: { ready: 'Unknown', outOfService: false, instanceId: 'i-1', instance: 'running', ...node } as VolumeNode,
    };
    const inForce = { ...defaultPolicy, ...policy };
    const decision = decideVolumeDetach(question, NOW, inForce);
    const current = detachDraft({ ...NODE, nowMs: NOW, policy: inForce }, decision, question);
    expect(current.outcome['reason']).not.toBe(reason);
    expect(replay(stored({ ...current, outcome: { ...current.outcome, reason } }))).toMatchObject({ same: true });
  });

  it('differs if the outcome does', () => {
    const outcome = { ...draft.outcome, kind: 'other' };
    expect(replay(stored({ ...draft, outcome } as DecisionDraft)).same).toBe(false);
  });
});

function cloudDecisionOfEarlierVersion(): DecisionDraft {
  const question: CloudQuestion & { uid: string } = {
    ...NODE,
    ready: 'Unknown',
    answer: { kind: 'foreign', reason: 'another region' },
    memory: {},
    createdAtMs: 0,
    hasShutdownTaint: false,
  };
  const { decision } = decideCloud(question, NOW, defaultPolicy);
  const draft = cloudDraft(decision, question, NOW, defaultPolicy);
  return { ...draft, outcome: { ...draft.outcome, why: 'worded as before' } } as DecisionDraft;
}
