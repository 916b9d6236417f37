import { describe, expect, it } from 'vitest';
import type { CloudAnswer } from '../../shared/fleet/instances/instance.ts';
import { type CloudQuestion, decideCloud } from '../../shared/fleet/instances/rule.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { replayed } from '../../test/support/replayed.ts';
import { cloudDraft, cloudNodeReplay, outOfServiceDraft } from './decisions.ts';

const NOW_MS = 1_000_000;
const notFound: CloudAnswer = { kind: 'notFound' };
const found = (state: 'running' | 'stopped' | 'terminated'): CloudAnswer => ({
  kind: 'found',
  state,
  launchedAtMs: undefined,
});

const question = (over: Partial<CloudQuestion>): CloudQuestion & { readonly uid: string } => ({
  nodeName: 'n',
  uid: 'u',
  ready: 'Unknown',
  answer: notFound,
  memory: {},
  createdAtMs: 0,
  hasShutdownTaint: false,
  ...over,
});

describe('the record of what follows from an EC2 instance', () => {
  it.each<[string, Partial<CloudQuestion>, string, string]>([
    ['delete', { answer: found('terminated') }, 'NodeDeleted', 'EC2 instance state terminated: the Node is deleted'],
    [
      'addShutdownTaint',
      { answer: found('stopped') },
      'ShutdownTaintAdded',
      'EC2 instance state stopped: the shutdown taint is added',
    ],
    [
      'removeShutdownTaint',
      { ready: 'True', answer: found('stopped'), hasShutdownTaint: true },
      'ShutdownTaintRemoved',
      'node is Ready: the shutdown taint is removed',
    ],
  ])('%s: act and text, and it replays', (kind, over, act, reason) => {
    const asked = question(over);
    const { decision } = decideCloud(asked, NOW_MS, defaultPolicy);
    const draft = cloudDraft(decision, asked, NOW_MS, defaultPolicy);
    expect(draft).toMatchObject({ act, reason, outcome: { kind } });
    expect(replayed(draft, cloudNodeReplay)).toEqual(draft.outcome);
  });

  it.each<[string, Partial<CloudQuestion>, string]>([
    ['wait', {}, ': the Node is kept, and EC2 is asked again'],
    ['nothing', { ready: 'True' }, ': the Node is kept'],
  ])('%s: the text of the rule, and that the Node is kept', (kind, over, effect) => {
    const asked = question({ confirmWithinMs: 60_000, ...over });
    const { decision } = decideCloud(asked, NOW_MS, defaultPolicy);
    const draft = cloudDraft(decision, asked, NOW_MS, defaultPolicy);
    const { ready, answer, memory, createdAtMs, hasShutdownTaint, confirmWithinMs } = asked;
    expect(draft).toEqual({
      act: 'NodeKept',
      about: { kind: 'Node', name: 'n', uid: 'u' },
      atMs: NOW_MS,
      reason: decision.reason + effect,
      rule: 'cloud',
      inputs: {
        question: { ready, answer, memory, createdAtMs, hasShutdownTaint, confirmWithinMs },
        policy: { nodeMonitorPeriodSeconds: 5, cloudYoungInstanceSeconds: 300 },
      },
      outcome: { kind, why: decision.reason },
    });
    expect(replayed(draft, cloudNodeReplay)).toEqual(draft.outcome);
  });

  it('replays an answer that came too late to confirm the first one', () => {
    const asked = question({ memory: { notFoundSinceMs: NOW_MS - 10_000 }, confirmWithinMs: 9_999 });
    const { decision } = decideCloud(asked, NOW_MS, defaultPolicy);
    const draft = cloudDraft(decision, asked, NOW_MS, defaultPolicy);
    expect(draft.outcome['kind']).toBe('wait');
    expect(replayed(draft, cloudNodeReplay)).toEqual(draft.outcome);
  });
});

describe('the record of an out-of-service taint', () => {
  const policy = { ...defaultPolicy, automaticOutOfService: 'stopped', automaticOutOfServiceAfterSeconds: 60 } as const;
  const node = { nodeName: 'n', uid: 'u', nowMs: NOW_MS, policy };

  it.each<['add' | 'remove', 'Unknown' | 'True', 'absent' | 'ours', string, string]>([
    [
      'add',
      'Unknown',
      'absent',
      'OutOfServiceAdded',
      'EC2 instance state stopped since 1970-01-01T00:15:40Z: out-of-service taint added; its pods and volumes are released',
    ],
    ['remove', 'True', 'ours', 'OutOfServiceRemoved', 'Ready is True: out-of-service taint removed'],
  ])('%s: all that the rule read, and it replays', (change, ready, outOfServiceTaint, act, reason) => {
    const asked = { ready, answer: found('stopped'), memory: { downSinceMs: NOW_MS - 60_000 }, outOfServiceTaint };
    const draft = outOfServiceDraft(change, node, asked);
    expect(draft).toEqual({
      act,
      about: { kind: 'Node', name: 'n', uid: 'u' },
      atMs: NOW_MS,
      reason,
      rule: 'outOfService',
      inputs: {
        question: asked,
        policy: { automaticOutOfService: 'stopped', automaticOutOfServiceAfterSeconds: 60 },
      },
      outcome: { change },
    });
    expect(replayed(draft, cloudNodeReplay)).toEqual({ change });
  });

  it.each<[CloudAnswer, string]>([
    [notFound, 'EC2 does not know the instance'],
    [{ kind: 'failed', cause: 'throttled' } as CloudAnswer, 'the EC2 request failed (throttled)'],
    [{ kind: 'foreign' } as CloudAnswer, 'EC2 is not asked'],
    [{ kind: 'notEc2' } as CloudAnswer, 'EC2 is not asked'],
  ])('names an answer without a state, and now where it is not known since when', (answer, text) => {
    const { reason } = outOfServiceDraft('add', node, {
      ready: 'Unknown',
      answer,
      memory: {},
      outOfServiceTaint: 'absent',
    });
    expect(reason).toContain(`${text} since 1970-01-01T00:16:40Z:`);
  });
});
