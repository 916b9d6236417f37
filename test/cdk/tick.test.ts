import type { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
import { functionIds, ofType, shortArn, synthesise } from './synthesised.ts';

interface Target {
  readonly Arn: unknown;
  readonly Input: unknown;
  readonly RetryPolicy: { readonly MaximumEventAgeInSeconds: number; readonly MaximumRetryAttempts: number };
  readonly DeadLetterConfig: { readonly Arn: unknown };
}

const template = synthesise();
const WOKEN = ['Evictor', 'CloudNode', 'PodGc', 'Scheduler'] as const;

const scheduleOf = (of: Template, controller: string) => {
  const found = ofType(of, 'AWS::Scheduler::Schedule').filter(([id]) => id.includes(`${controller}Tick`));
  expect(found).toHaveLength(1);
  return found[0]![1].Properties as {
    ScheduleExpression: string;
    FlexibleTimeWindow: object;
    State: string;
    Target: Target;
  };
};
const functionOf = (role: string) => {
  const id = functionIds(template).get(role as never);
  return ofType(template, 'AWS::Lambda::Function').find(([each]) => each === id)!;
};
const statementsOf = (id: string) => {
  const policy = ofType(template, 'AWS::IAM::Policy').find(([each]) => each.includes(id))!;
  const { Statement: statements } = policy[1].Properties['PolicyDocument'] as {
    Statement: { Action: string | string[]; Resource: unknown }[];
  };
  return statements.map(({ Action: action, Resource: resource }) => ({
    actions: [action].flat(),
    resources: [resource].flat().map(shortArn),
  }));
};

describe.each(['NodeMonitor', ...WOKEN])('the schedule of %s', (controller) => {
  it('names each minute, and is not replayed after an outage', () => {
    const schedule = scheduleOf(template, controller);
    expect(schedule).toMatchObject({
      ScheduleExpression: 'cron(* * * * ? *)',
      FlexibleTimeWindow: { Mode: 'OFF' },
      State: 'ENABLED',
    });
    expect(schedule.Target.RetryPolicy).toEqual({ MaximumEventAgeInSeconds: 60, MaximumRetryAttempts: 2 });
    expect(shortArn(schedule.Target.DeadLetterConfig.Arn)).toMatch(/DeadLetters/);
  });

  it('has a role that may call its target and send dead letters, nothing else', () => {
    const allowed = statementsOf(`${controller}Tick`).flatMap(({ actions, resources }) =>
      actions.flatMap((action) => resources.map((resource) => `${action} ${resource}`)),
    );
    expect(allowed).toHaveLength(2);
    expect(allowed).toContainEqual(expect.stringMatching(/^sqs:SendMessage <.*DeadLetters/));
    const own = controller === 'NodeMonitor' ? /^sqs:SendMessage <.*TickQueue/ : /^lambda:InvokeFunction <[^*]*Arn>$/;
    expect(allowed).toContainEqual(expect.stringMatching(own));
  });
});

describe('the queue of parts', () => {
  const queue = ofType(template, 'AWS::SQS::Queue').find(([id]) => id.includes('NodeMarkerPartsQueue'))!;

  it('is known to node-monitor and to node-marker', () => {
    for (const role of ['node-monitor', 'node-marker']) {
      const { Variables: variables } = functionOf(role)[1].Properties['Environment'] as {
        Variables: Record<string, unknown>;
      };
      expect(shortArn(variables['PART_QUEUE_URL'])).toBe(`<${queue[0]}>`);
    }
  });

  it('hides a message while it is processed, and moves it to dead letters after every receive', () => {
    const properties = queue[1].Properties as {
      MessageRetentionPeriod: number;
      VisibilityTimeout: number;
      RedrivePolicy: { deadLetterTargetArn: unknown; maxReceiveCount: number };
    };
    const { maxReceiveCount, deadLetterTargetArn } = properties.RedrivePolicy;
    expect(shortArn(deadLetterTargetArn)).toMatch(/DeadLetters/);
    expect(properties.VisibilityTimeout).toBeGreaterThanOrEqual(
      Number(functionOf('node-marker')[1].Properties['Timeout']),
    );
    expect(properties.MessageRetentionPeriod).toBeGreaterThan(maxReceiveCount * properties.VisibilityTimeout);
  });
});

describe('the chain of node-monitor', () => {
  const queue = ofType(template, 'AWS::SQS::Queue').find(([id]) => id.includes('NodeMonitorTickQueue'))!;

  it('is restarted by a message of its watchdog in the queue of the ticks', () => {
    const { Target: target } = scheduleOf(template, 'NodeMonitor');
    expect(shortArn(target.Arn)).toBe(`<${queue[0]}.Arn>`);
    expect(JSON.parse(shortArn(target.Input))).toEqual({ watchdog: '<aws.scheduler.scheduled-time>' });
  });

  it('is the only loop that Lambda may not end', () => {
    expect(functionOf('node-monitor')[1].Properties['RecursiveLoop']).toBe('Allow');
    const allowed = ofType(template, 'AWS::Lambda::Function').filter(
      ([, { Properties: properties }]) => properties['RecursiveLoop'] !== undefined,
    );
    expect(allowed).toHaveLength(1);
  });

  it('knows its queue, and may send and return messages', () => {
    const { Variables: variables } = functionOf('node-monitor')[1].Properties['Environment'] as {
      Variables: Record<string, unknown>;
    };
    expect(shortArn(variables['TICK_QUEUE_URL'])).toBe(`<${queue[0]}>`);
    const { actions } = statementsOf('NodeMonitorRole').find(({ resources }) =>
      resources.includes(`<${queue[0]}.Arn>`),
    )!;
    expect(actions).toEqual([
      'sqs:ChangeMessageVisibility',
      'sqs:DeleteMessage',
      'sqs:GetQueueAttributes',
      'sqs:ReceiveMessage',
      'sqs:SendMessage',
    ]);
  });

  it('keeps a message for its delay and every receive, then moves it to dead letters', () => {
    const properties = queue[1].Properties as {
      MessageRetentionPeriod: number;
      VisibilityTimeout: number;
      RedrivePolicy: { deadLetterTargetArn: unknown; maxReceiveCount: number };
    };
    const { maxReceiveCount, deadLetterTargetArn } = properties.RedrivePolicy;
    expect(properties.MessageRetentionPeriod).toBeGreaterThan(60 + maxReceiveCount * 60);
    expect(shortArn(deadLetterTargetArn)).toMatch(/DeadLetters/);
    expect(properties.VisibilityTimeout).toBeGreaterThanOrEqual(
      Number(functionOf('node-monitor')[1].Properties['Timeout']),
    );
  });

  it('receives messages one at a time, with no concurrency that costs pollers', () => {
    const mappings = ofType(template, 'AWS::Lambda::EventSourceMapping').filter(
      ([
        ,
        {
          Properties: { FunctionName: name },
        },
      ]) => shortArn(name) === `<${functionOf('node-monitor')[0]}>`,
    );
    expect(mappings).toHaveLength(1);
    expect(mappings[0]![1].Properties).toMatchObject({
      BatchSize: 1,
      FunctionResponseTypes: ['ReportBatchItemFailures'],
    });
    expect(mappings[0]![1].Properties['ScalingConfig']).toBeUndefined();
  });

  it('wakes the functions that it may invoke', () => {
    const { Variables: variables } = functionOf('node-monitor')[1].Properties['Environment'] as {
      Variables: Record<string, unknown>;
    };
    const names = JSON.parse(shortArn(variables['WAKE_FUNCTIONS'])) as Record<string, string>;
    const roles = ['evictor', 'cloud-node', 'pod-gc', 'scheduler', 'workloads'];
    expect(Object.keys(names).sort()).toEqual([...roles].sort());
    for (const role of roles) expect(names[role]).toBe(`<${functionOf(role)[0]}>`);
    const { resources } = statementsOf('NodeMonitorRole').find(({ actions }) =>
      actions.includes('lambda:InvokeFunction'),
    )!;
    expect([...resources].sort()).toEqual(roles.map((role) => `<${functionOf(role)[0]}.Arn>`).sort());
  });
});

describe.each([
  ['Evictor', 'evictor'],
  ['CloudNode', 'cloud-node'],
  ['PodGc', 'pod-gc'],
  ['Scheduler', 'scheduler'],
])('%s, which is woken', (controller, role) => {
  it('has no queue, and is invoked by a schedule', () => {
    expect(ofType(template, 'AWS::SQS::Queue').filter(([id]) => id.includes(controller))).toEqual([]);
    const { Target: target } = scheduleOf(template, controller);
    expect(shortArn(target.Arn)).toBe(`<${functionOf(role)[0]}.Arn>`);
    expect(JSON.parse(shortArn(target.Input))).toEqual({ sweep: '<aws.scheduler.scheduled-time>' });
  });

  it('drops events that failed or are old: the next one does the same', () => {
    const options = ofType(template, 'AWS::Lambda::EventInvokeConfig').find(
      ([
        ,
        {
          Properties: { FunctionName: name },
        },
      ]) => shortArn(name) === `<${functionOf(role)[0]}>`,
    )![1];
    expect(options.Properties).toMatchObject({ MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60 });
  });
});
