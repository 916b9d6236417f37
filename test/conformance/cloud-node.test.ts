/**
 * Area CL: deletion and shutdown by the cloud's word. We ask EC2 by providerID only, and a Node that EC2 does not know
 * follows D11: two answers in a row about an instance that is not young. "v1" and "v2" name upstream's two interfaces.
 */
import { describe, expect, it } from 'vitest';
import type { CloudAnswer } from '../../shared/fleet/instances/instance.ts';
import { parseProviderId } from '../../shared/fleet/instances/provider-id.ts';
import { type CloudMemory, type CloudQuestion, decideCloud } from '../../shared/fleet/instances/rule.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { ConditionStatus } from '../../shared/kubernetes/kubernetes.ts';
import { controlledFleet } from '../support/controlled-fleet.ts';

const INSTANCE = 'aws:///us-east-1a/i-0123456789abcdef0';
const HOUR_MS = 3_600_000;

interface Given {
  readonly ready: ConditionStatus | undefined;
  readonly providerId?: string;
  readonly ec2: CloudAnswer;
  readonly shutdownTaint?: boolean;
  readonly ageMs?: number;
}

/** Kinds of the decisions of passes 5 s apart. */
function passes(count: number, given: Given): string[] {
  const parsed = parseProviderId('providerId' in given ? given.providerId : INSTANCE);
  const answer: CloudAnswer = parsed.kind === 'ec2' ? given.ec2 : { kind: 'notEc2', reason: parsed.reason };
  let memory: CloudMemory = {};
  return Array.from({ length: count }, (_, pass) => {
    const question: CloudQuestion = {
      nodeName: 'node0',
      ready: given.ready,
      answer,
      memory,
      createdAtMs: -(given.ageMs ?? HOUR_MS),
      hasShutdownTaint: given.shutdownTaint ?? false,
    };
    const result = decideCloud(question, pass * 5_000, defaultPolicy);
    memory = result.memory;
    return result.decision.kind;
  });
}

const gone: CloudAnswer = { kind: 'notFound' };
const running: CloudAnswer = { kind: 'found', state: 'running', launchedAtMs: undefined };
const stopped: CloudAnswer = { kind: 'found', state: 'stopped', launchedAtMs: undefined };
const noId = { providerId: '' };

describe('cloud lifecycle', () => {
  it('CL-01 (ours, D11) deletes a not ready node without an instance, at the second answer', () => {
    expect(passes(2, { ready: 'False', ec2: gone })).toEqual(['wait', 'delete']);
  });

  it('CL-03 keeps a not ready node with an existing instance', () => {
    expect(passes(3, { ready: 'False', ec2: running })).toEqual(['nothing', 'nothing', 'nothing']);
  });

  it('CL-05 keeps an Unknown node with an instance that is not shut down', () => {
    expect(passes(1, { ready: 'Unknown', ec2: running })).toEqual(['nothing']);
  });

  it('CL-07 (ours, D11) deletes a not ready node without an instance, at the second answer', () => {
    expect(passes(2, { ready: 'False', ec2: gone })).toEqual(['wait', 'delete']);
  });

  it('CL-09 keeps a not ready node with an existing instance', () => {
    expect(passes(1, { ready: 'False', ec2: running })).toEqual(['nothing']);
  });

  it('CL-11 (ours, D11) never deletes a node without providerID: EC2 was not asked about it', () => {
    expect(passes(100, { ready: 'Unknown', ...noId, ec2: gone, ageMs: 120_000 })).toEqual(Array(100).fill('nothing'));
  });

  it('CL-13 keeps an Unknown node with an instance that is not shut down', () => {
    expect(passes(1, { ready: 'Unknown', ec2: running })).toEqual(['nothing']);
  });

  it('CL-15 adds the shutdown taint to a not ready node with an instance that is shut down', () => {
    expect(passes(1, { ready: 'False', ec2: stopped })).toEqual(['addShutdownTaint']);
  });

  it('CL-17 (ours, D11) never deletes a node with an empty providerID', () => {
    expect(passes(2, { ready: 'False', ...noId, ec2: gone })).toEqual(['nothing', 'nothing']);
  });

  it('CL-19 (ours, D11) has no look-up by name that could say "instance not found"', () => {
    expect(passes(2, { ready: 'False', ...noId, ec2: gone })).toEqual(['nothing', 'nothing']);
  });

  it('CL-21 (ours, D11) deletes a not ready node without instance that is not shut down, at the second answer', () => {
    expect(passes(2, { ready: 'False', ec2: gone })).toEqual(['wait', 'delete']);
  });

  it('CL-23 deletes an Unknown node with a terminated instance, at the first answer', () => {
    const terminated: CloudAnswer = { kind: 'found', state: 'terminated', launchedAtMs: undefined };
    expect(passes(1, { ready: 'Unknown', ec2: terminated, shutdownTaint: true })).toEqual(['delete']);
  });

  it('CL-25 asks about the instance that spec.providerID names', async () => {
    const fleet = controlledFleet({ hasCloud: true });
    const instanceId = 'i-0123456789abcdef0';
    fleet.cloud.put({ instanceId, zone: 'eu-central-1a', instanceType: 'm7g.large', launchedAtMs: 0 });
    fleet.cloud.stop(instanceId);
    await fleet.register('n', { providerID: `aws:///eu-central-1a/${instanceId}` });
    fleet.at(600);
    await fleet.post('n', 'Unknown');
    await fleet.streams();
    await fleet.controllers.tickCloudNode(fleet.slot());
    expect(await fleet.taints('n')).toContain('shutdown:NoSchedule');
  });

  it.each([
    'CL-27 (ours, D11) leaves a node without a providerID as it is: no metadata contains one',
    'CL-29 (ours, D11) asks nothing about a node without a providerID, and says so on the node',
  ])('%s', async () => {
    const fleet = controlledFleet({ hasCloud: true });
    const taint = {
      key: 'node.cloudprovider.kubernetes.io/uninitialized',
      value: 'true',
      effect: 'NoSchedule',
    } as const;
    await fleet.register('n', { taints: [taint] });
    await fleet.streams();
    await fleet.controllers.tickCloudNode(fleet.slot());
    expect(fleet.cloud.calls().describeInstances).toBe(0);
    expect((await fleet.node('n'))?.spec).toMatchObject({ taints: expect.arrayContaining([taint]) });
    expect((await fleet.node('n'))?.spec?.providerID).toBeUndefined();
    expect(await fleet.events('InitializationFailed')).toMatchObject([{ involvedObject: { name: 'n' } }]);
  });

  it('CL-31 removes the shutdown taint of a Ready node', () => {
    expect(passes(1, { ready: 'True', ec2: gone, shutdownTaint: true })).toEqual(['removeShutdownTaint']);
  });

  it('CL-33 (ours, D11) a node without providerID is spared at any age', () => {
    expect(passes(2, { ready: 'Unknown', ...noId, ec2: gone, ageMs: 60_000 })).toEqual(['nothing', 'nothing']);
  });

  it('CL-35 (ours, D11) a node without Ready condition counts as Unknown and is deleted at the second answer', () => {
    expect(passes(2, { ready: undefined, ec2: gone })).toEqual(['wait', 'delete']);
  });
});
