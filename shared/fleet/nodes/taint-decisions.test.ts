import { describe, expect, it } from 'vitest';
import { replayed } from '../../../test/support/replayed.ts';
import { defaultPolicy, type Policy } from '../policy.ts';
import {
  liftDraft,
  nodeReconcilerReplay,
  profileDraft,
  silenceDraft,
  swapDraft,
  taintsDraft,
} from './taint-decisions.ts';

const NOW_MS = 100_000;
const about = { kind: 'Node', name: 'n', uid: 'u' };
const node = { nodeName: 'n', uid: 'u', nowMs: NOW_MS };
const carrying = (notReady: boolean, unreachable: boolean) => ({ notReady, unreachable });

describe('the record of NoExecute taints', () => {
  it('that are swapped has Ready and the taint before, and replays', () => {
    const draft = swapDraft({ ...node, ready: 'False', noExecute: carrying(false, true) }, 'unreachable', 'notReady');
    expect(draft).toEqual({
      act: 'TaintSwapped',
      about,
      atMs: NOW_MS,
      reason: 'Ready is False: taint unreachable replaced by notReady; toleration times of pods keep running',
      rule: 'noExecute',
      inputs: { ready: 'False', noExecute: carrying(false, true), totalDisruption: false },
      outcome: { from: 'unreachable', to: 'notReady' },
    });
    expect(replayed(draft, nodeReconcilerReplay)).toEqual(draft.outcome);
    const same = { ...draft, inputs: { ...draft.inputs, ready: 'Unknown' } } as typeof draft;
    expect(replayed(same, nodeReconcilerReplay)).toEqual({ kind: 'nothing' });
  });

  it('of a Node without Ready says so, and has none', () => {
    const draft = swapDraft({ ...node, ready: undefined, noExecute: carrying(false, false) }, 'a', 'b');
    expect(draft.reason).toContain('Ready is absent:');
    expect('ready' in draft.inputs).toBe(false);
  });

  it.each<['ready' | 'totalDisruption', 'True' | 'Unknown', boolean, boolean, readonly string[], string]>([
    ['ready', 'True', true, false, ['notReady'], 'Ready is True: our NoExecute taints are removed'],
    ['ready', 'True', false, true, ['unreachable'], 'Ready is True: our NoExecute taints are removed'],
    ['totalDisruption', 'Unknown', true, false, ['notReady'], 'total disruption: our NoExecute taints are removed'],
    [
      'totalDisruption',
      'Unknown',
      true,
      true,
      ['unreachable', 'notReady'],
      'total disruption: our NoExecute taints are removed',
    ],
  ])('that are lifted for %s has them, and replays', (why, ready, notReady, unreachable, lift, reason) => {
    const noExecute = carrying(notReady, unreachable);
    const draft = liftDraft({ ...node, ready, noExecute }, why);
    expect(draft).toEqual({
      act: 'TaintLifted',
      about,
      atMs: NOW_MS,
      reason,
      rule: 'noExecute',
      inputs: { ready, noExecute, totalDisruption: why === 'totalDisruption' },
      outcome: { lift },
    });
    expect(replayed(draft, nodeReconcilerReplay)).toEqual({ lift });
  });
});

describe('the record of taints that follow conditions', () => {
  const notReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' } as const;
  const cordoned = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' } as const;
  const condition = (type: string, status: string, more: object = {}) =>
    ({ type, status, message: 'm', ...more }) as never;
  const ready = condition('Ready', 'False', { reason: 'KubeletNotReady' });

  it.each([
    ['Tainted', [], [notReady], false, 'Ready is False: +node.kubernetes.io/not-ready:NoSchedule'],
    [
      'TaintLifted',
      [notReady, cordoned],
      [notReady],
      false,
      'Ready is False: -node.kubernetes.io/unschedulable:NoSchedule',
    ],
    [
      'TaintSwapped',
      [{ ...notReady, key: 'node.kubernetes.io/unreachable' }],
      [notReady, cordoned],
      true,
      'Ready is False, cordoned: +node.kubernetes.io/not-ready:NoSchedule, +node.kubernetes.io/unschedulable:NoSchedule, -node.kubernetes.io/unreachable:NoSchedule',
    ],
  ] as const)('%s has the conditions that the rule reads, and replays', (act, before, after, unschedulable, reason) => {
    const conditions = [
      ready,
      condition('DiskPressure', 'False'),
      condition('NetworkUnavailable', 'False'),
      condition('Other', 'True'),
    ];
    const draft = taintsDraft({ ...node, unschedulable }, conditions, before, after);
    const texts = (of: readonly { key: string; effect: string }[]) => of.map(({ key, effect }) => `${key}:${effect}`);
    const outcome = {
      added: texts(after).filter((each) => !texts(before).includes(each)),
      removed: texts(before).filter((each) => !texts(after).includes(each)),
    };
    expect(draft).toEqual({
      act,
      about,
      atMs: NOW_MS,
      reason,
      rule: 'taints',
      inputs: {
        taints: before,
        conditions: [
          { type: 'Ready', status: 'False', reason: 'KubeletNotReady' },
          { type: 'DiskPressure', status: 'False' },
          { type: 'NetworkUnavailable', status: 'False' },
        ],
        unschedulable,
      },
      outcome,
    });
    expect(replayed(draft!, nodeReconcilerReplay)).toEqual(outcome);
  });

  it('is none where no taint changes, and says that Ready is absent', () => {
    expect(taintsDraft({ ...node, unschedulable: false }, [ready], [notReady], [notReady])).toBeUndefined();
    expect(taintsDraft({ ...node, unschedulable: false }, [], [], [notReady])?.reason).toMatch(/^Ready is absent: /);
    const draft = taintsDraft({ ...node, unschedulable: false }, [], [], [notReady])!;
    expect(replayed(draft, nodeReconcilerReplay)).toEqual({ added: [], removed: [] });
  });
});

describe('the record of a planned silence', () => {
  const until = (iso: string | undefined, reason?: string) => ({
    metadata: {
      name: 'n',
      uid: 'u',
      annotations: {
        ...(iso && { 'nodekeeper.dev/planned-silence-until': iso }),
        ...(reason && { 'nodekeeper.dev/planned-silence-reason': reason }),
      },
    },
  });
  const at = { nowMs: NOW_MS, changedAtMs: 60_000 };
  const HOUR = '1970-01-01T01:00:00Z';

  it.each([
    ['nightly', 'nightly'],
    [undefined, 'no reason'],
  ])('that begins for %s has its end, and replays', (reason, text) => {
    const draft = silenceDraft(until(undefined), until(HOUR, reason), at);
    expect(draft).toEqual({
      act: 'SilencePlanned',
      about,
      atMs: NOW_MS,
      reason: `no heartbeat is expected until ${HOUR} (${text}); the node is not marked before`,
      rule: 'plannedSilence',
      inputs: { toMs: 3_600_000 },
      outcome: { kind: 'planned', untilMs: 3_600_000 },
    });
    expect('fromMs' in draft!.inputs).toBe(false);
    expect(replayed(draft!, nodeReconcilerReplay)).toEqual(draft?.outcome);
  });

  it.each([
    ['1970-01-01T00:01:00Z', 60_000, 'its time is over'],
    ['1970-01-01T00:01:01Z', 61_000, 'the node sends heartbeats again, or the promise was removed'],
  ])('until %s that ends a minute after the start says how, and replays', (iso, fromMs, how) => {
    const draft = silenceDraft(until(iso), until(undefined), at);
    expect(draft).toEqual({
      act: 'SilenceEnded',
      about,
      atMs: NOW_MS,
      reason: `planned silence ended: ${how}; silence is counted from now on`,
      rule: 'plannedSilence',
      inputs: { fromMs },
      outcome: { kind: 'ended' },
    });
    expect(replayed(draft!, nodeReconcilerReplay)).toEqual({ kind: 'ended' });
  });

  it('is none where it stays', () => {
    expect(silenceDraft(until(HOUR), until(HOUR, 'other'), at)).toBeUndefined();
    expect(silenceDraft(until(undefined), until(undefined), at)).toBeUndefined();
  });
});

describe('the record of a profile', () => {
  const edge = { name: 'edge', nodeSelector: { matchLabels: { pool: 'edge' } }, nodeMonitorGracePeriodSeconds: 90 };
  const policy = { ...defaultPolicy, profiles: [edge] } as unknown as Policy;
  const of = (profile: string | undefined, labels?: Record<string, string>) => ({
    metadata: {
      name: 'n',
      uid: 'u',
      labels,
      annotations: profile === undefined ? undefined : { 'nodekeeper.dev/profile': profile },
    },
  });
  const at = { nowMs: NOW_MS, policy };

  it('that a label selects has the label and the times, and replays', () => {
    const draft = profileDraft(of(undefined), of('edge', { pool: 'edge', other: 'x' }), at);
    expect(draft).toEqual({
      act: 'ProfileChanged',
      about,
      atMs: NOW_MS,
      reason: 'default to edge: pool=edge; heartbeat every 10 s, grace period 90 s',
      rule: 'profile',
      inputs: {
        labels: { pool: 'edge' },
        profiles: [{ name: 'edge', nodeSelector: { matchLabels: { pool: 'edge' } } }],
      },
      outcome: { profile: 'edge' },
    });
    expect(replayed(draft!, nodeReconcilerReplay)).toEqual({ profile: 'edge' });
  });

  it('that is the default one again names no label', () => {
    const draft = profileDraft(of('edge', { pool: 'edge' }), of(undefined), at);
    expect(draft?.reason).toBe(
      'edge to default: no label that a profile selects; heartbeat every 10 s, grace period 40 s',
    );
    expect(replayed(draft!, nodeReconcilerReplay)).toEqual({ profile: 'default' });
  });

  it('is none where the profile stays, or where this policy selects another one', () => {
    expect(profileDraft(of('edge'), of('edge', { pool: 'edge' }), at)).toBeUndefined();
    expect(profileDraft(of(undefined), of('edge'), at)).toBeUndefined();
  });
});
