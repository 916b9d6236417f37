import { existsSync } from 'node:fs';
import type { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
import { handlerEntry } from '../../cdk/lib/function-names.ts';
import { tickOffsetsSeconds } from '../../cdk/lib/tick.ts';
import { functionIds, ofType, shortArn, synthesise } from './synthesised.ts';

interface Entry {
  readonly Id: string;
  readonly DelaySeconds: number;
  readonly MessageBody: string;
}
interface Target {
  readonly Arn: unknown;
  readonly Input: unknown;
  readonly RetryPolicy: { readonly MaximumEventAgeInSeconds: number; readonly MaximumRetryAttempts: number };
  readonly DeadLetterConfig: { readonly Arn: unknown };
  readonly RoleArn: unknown;
}

const targetsOf = (template: Template, controller: string): Target[] =>
  ofType(template, 'AWS::Scheduler::Schedule')
    .filter(([id]) => id.includes(`${controller}Tick`))
    .map(([, resource]) => resource.Properties['Target'] as Target);

const inputOf = (target: Target) => JSON.parse(shortArn(target.Input)) as { QueueUrl: string; Entries: Entry[] };
const entriesOf = (template: Template, controller: string): Entry[] =>
  targetsOf(template, controller).flatMap((target) => inputOf(target).Entries);

const template = synthesise();
const controllers = existsSync(handlerEntry('evictor')) ? ['NodeMonitor', 'Evictor'] : ['NodeMonitor'];

describe.each(controllers)('tick of %s', (controller) => {
  it('has ticks at 0, 5 … 55 s of each minute, each exactly once, at most ten messages per schedule', () => {
    const delays = entriesOf(template, controller).map((entry) => entry.DelaySeconds);
    expect(delays.sort((a, b) => a - b)).toEqual([0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55]);
    const targets = targetsOf(template, controller);
    expect(targets).toHaveLength(2);
    for (const target of targets) {
      const { Entries: entries } = inputOf(target);
      expect(entries.length).toBeLessThanOrEqual(10);
      expect(new Set(entries.map((entry) => entry.Id)).size).toBe(entries.length);
    }
  });

  it('carries its due minute and its offset: a late message knows its slot', () => {
    for (const entry of entriesOf(template, controller)) {
      expect(JSON.parse(entry.MessageBody)).toEqual({
        scheduledAt: '<aws.scheduler.scheduled-time>',
        offsetSeconds: entry.DelaySeconds,
      });
    }
  });

  it('is sent by the scheduler directly to the queue, and is not replayed after an outage', () => {
    for (const target of targetsOf(template, controller)) {
      expect(shortArn(target.Arn)).toMatch(/:scheduler:::aws-sdk:sqs:sendMessageBatch$/);
      expect(inputOf(target).QueueUrl).toMatch(new RegExp(`<.*${controller}TickQueue.*>`));
      expect(target.RetryPolicy).toEqual({ MaximumEventAgeInSeconds: 60, MaximumRetryAttempts: 2 });
      expect(shortArn(target.DeadLetterConfig.Arn)).toMatch(/DeadLetters/);
    }
    for (const [, schedule] of ofType(template, 'AWS::Scheduler::Schedule')) {
      expect(schedule.Properties).toMatchObject({
        ScheduleExpression: 'rate(1 minute)',
        FlexibleTimeWindow: { Mode: 'OFF' },
        State: 'ENABLED',
      });
    }
  });

  it('has a scheduler role that may send to the queue and its dead letters only', () => {
    const policy = ofType(template, 'AWS::IAM::Policy').find(([id]) => id.includes(`${controller}TickSchedulerRole`))!;
    const { Statement: statements } = policy[1].Properties['PolicyDocument'] as {
      Statement: { Action: string; Resource: unknown[] }[];
    };
    expect(statements.map((statement) => statement.Action)).toEqual(['sqs:SendMessage']);
    const resources = statements[0]!.Resource.map(shortArn);
    expect(resources).toHaveLength(2);
    for (const resource of resources) expect(resource).toMatch(/(TickQueue|DeadLetters)/);
  });

  it('outlasts its delay and every receive in the queue, then moves to the dead letters', () => {
    const queue = ofType(template, 'AWS::SQS::Queue').find(([id]) => id.includes(`${controller}TickQueue`))![1];
    const properties = queue.Properties as {
      MessageRetentionPeriod: number;
      VisibilityTimeout: number;
      RedrivePolicy: { deadLetterTargetArn: unknown; maxReceiveCount: number };
    };
    const { maxReceiveCount, deadLetterTargetArn } = properties.RedrivePolicy;
    expect(properties.MessageRetentionPeriod).toBeGreaterThan(55 + maxReceiveCount * properties.VisibilityTimeout);
    expect(properties.MessageRetentionPeriod).toBeLessThanOrEqual(300);
    expect(shortArn(deadLetterTargetArn)).toMatch(/DeadLetters/);
  });

  it('is received alone, within the visibility timeout, without a concurrency limit that costs pollers', () => {
    const role = controller === 'NodeMonitor' ? 'node-monitor' : 'evictor';
    const functionId = functionIds(template).get(role);
    const mapping = ofType(template, 'AWS::Lambda::EventSourceMapping').find(
      ([, resource]) => shortArn(resource.Properties['FunctionName']) === `<${functionId}>`,
    )![1];
    expect(mapping.Properties).toMatchObject({
      BatchSize: 1,
      FunctionResponseTypes: ['ReportBatchItemFailures'],
    });
    expect(mapping.Properties['ScalingConfig']).toBeUndefined();
    const lambda = ofType(template, 'AWS::Lambda::Function').find(([id]) => id === functionId)![1];
    const queue = ofType(template, 'AWS::SQS::Queue').find(([id]) => id.includes(`${controller}TickQueue`))![1];
    expect(Number(queue.Properties['VisibilityTimeout'])).toBeGreaterThanOrEqual(Number(lambda.Properties['Timeout']));
  });
});

describe('tick period', () => {
  it('comes from the policy', () => {
    const slower = synthesise({ policy: { nodeMonitorPeriodSeconds: 20 } });
    expect(entriesOf(slower, 'NodeMonitor').map((entry) => entry.DelaySeconds)).toEqual([0, 20, 40]);
    expect(targetsOf(slower, 'NodeMonitor')).toHaveLength(1);
  });

  it('of pod-gc is its own', () => {
    expect(entriesOf(template, 'PodGc').map((entry) => entry.DelaySeconds)).toEqual([0, 20, 40]);
    const faster = synthesise({ policy: { podGcPeriodSeconds: 10 } });
    expect(entriesOf(faster, 'PodGc')).toHaveLength(6);
    expect(entriesOf(faster, 'NodeMonitor')).toHaveLength(12);
  });

  it('of one minute is one message without delay', () => {
    expect(tickOffsetsSeconds(60)).toEqual([0]);
  });

  it('that does not divide a minute is refused, because ticks would drift against slots', () => {
    expect(() => tickOffsetsSeconds(7)).toThrow(RangeError);
    expect(() => tickOffsetsSeconds(0)).toThrow(RangeError);
  });
});
