import { describe, expect, it } from 'vitest';
import { replayed } from '../../../test/support/replayed.ts';
import { deploymentReplay, setCreatedDraft, setsScaledDraft } from './decisions.ts';
import { newSetSize, type Resize, reduceOldSets, type SizedSet } from './replica-sets.rule.ts';

const NOW_MS = 100_000;
const deployment = { metadata: { namespace: 'd', name: 'web', uid: 'u' } };
const ABOUT = { kind: 'Deployment', namespace: 'd', name: 'web', uid: 'u' };
const sized = (name: string, size: number, available = size): SizedSet => ({ name, size, available, createdAtMs: 1 });
const fenceposts = { surge: 1, unavailable: 1 };

describe('the record of scaled ReplicaSets', () => {
  it('of a rolling update replays: the new one', () => {
    const of = { newSet: sized('new', 1), oldSets: [sized('old', 2)], replicas: 3, fenceposts };
    const to = newSetSize(1, [of.newSet, ...of.oldSets], 3, fenceposts);
    expect(to).toBe(2);
    const draft = setsScaledDraft(
      deployment,
      [{ name: 'new', from: 1, to, step: 'new' }],
      { ...of, step: 'new' },
      NOW_MS,
    );
    expect(draft).toEqual({
      act: 'ReplicaSetsScaled',
      about: ABOUT,
      atMs: NOW_MS,
      reason: 'scaled new from 1 to 2 (new)',
      rule: 'rollingSizes',
      inputs: { ...of, step: 'new' },
      outcome: { sizes: [['new', 2]] },
    });
    expect(replayed(draft, deploymentReplay)).toEqual(draft.outcome);
  });

  it('of a rolling update replays: the old ones, each with its last size', () => {
    const of = {
      newSet: sized('new', 2),
      oldSets: [sized('broken', 2, 1), sized('old', 2)],
      replicas: 4,
      fenceposts: { surge: 2, unavailable: 1 },
    };
    const resizes = reduceOldSets(of.newSet, of.oldSets, 4, of.fenceposts);
    expect(resizes.map(({ name, to }) => [name, to])).toEqual([
      ['broken', 1],
      ['broken', 0],
      ['old', 1],
    ]);
    const last: readonly Resize[] = [resizes[1]!, resizes[2]!];
    const draft = setsScaledDraft(deployment, last, { ...of, step: 'old' }, NOW_MS);
    expect(draft.outcome).toEqual({
      sizes: [
        ['broken', 0],
        ['old', 1],
      ],
    });
    expect(replayed(draft, deploymentReplay)).toEqual(draft.outcome);
  });

  it('of a change of replicas is a fact', () => {
    const resizes: readonly Resize[] = [
      { name: 'a', from: 1, to: 3, step: 'scale' },
      { name: 'b', from: 2, to: 0, step: 'saturated' },
    ];
    expect(setsScaledDraft(deployment, resizes, undefined, NOW_MS)).toEqual({
      act: 'ReplicaSetsScaled',
      about: ABOUT,
      atMs: NOW_MS,
      reason: 'scaled a from 1 to 3 (scale), b from 2 to 0 (saturated)',
      rule: 'fact',
      inputs: { resizes },
      outcome: {},
    });
  });
});

it('the record of a created ReplicaSet is a fact', () => {
  expect(setCreatedDraft(deployment, 'web-1', 3, NOW_MS)).toEqual({
    act: 'ReplicaSetMade',
    about: ABOUT,
    atMs: NOW_MS,
    reason: 'the pod template has no ReplicaSet: created web-1 with 3 pods',
    rule: 'fact',
    inputs: { name: 'web-1', size: 3 },
    outcome: {},
  });
});
