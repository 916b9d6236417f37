import { Duration, Stack } from 'aws-cdk-lib';
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { type CfnFunction, EventSourceMapping } from 'aws-cdk-lib/aws-lambda';
import { ContextAttribute, Schedule, ScheduleExpression, ScheduleTargetInput } from 'aws-cdk-lib/aws-scheduler';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { HandlerFunction } from './handler-function.ts';

/** A call that starts later than this has no effect: the next one of the schedule is due. */
const SCHEDULE_AGE_MAX_SECONDS = 60;
const SCHEDULE_RETRIES_MAX = 2;
/** At least the time limit of the function. A message of a killed tick is delivered again after this time. */
const VISIBILITY_SECONDS = 40;
/** Receives while ticks fail: a minute with the shortest period, after which the watchdog sends another message. */
const RECEIVES_MAX = 12;
/** Counts from sending, so it must exceed the longest delay, 60 s, plus all receives: 12 × 60 s. */
const MESSAGE_RETENTION_SECONDS = 900;
/** The oldest event that Lambda passes from its queue to a function. The next wake-up or sweep is more recent. */
const EVENT_AGE_MAX_SECONDS = 60;

export interface MinuteScheduleProps {
  readonly description: string;
  readonly targetArn: string;
  /** What the schedule may do with the target. */
  readonly action: string;
  /** JSON; context attributes are replaced. */
  readonly input: Readonly<Record<string, string>>;
  readonly deadLetters: Queue;
}

/**
 * Calls a target in each minute. A cron expression names the minute; a rate counts from the creation of the schedule.
 * The call comes at any second of the minute: nothing may depend on when. Source: EventBridge Scheduler User Guide,
 * "Schedule types" (60-second precision).
 */
class MinuteSchedule extends Construct {
  constructor(scope: Construct, id: string, props: MinuteScheduleProps) {
    super(scope, id);
    const role = new Role(this, 'Role', {
      assumedBy: new ServicePrincipal('scheduler.amazonaws.com', {
        conditions: { StringEquals: { 'aws:SourceAccount': Stack.of(this).account } },
      }),
    });
    role.addToPolicy(new PolicyStatement({ actions: [props.action], resources: [props.targetArn] }));
    role.addToPolicy(new PolicyStatement({ actions: ['sqs:SendMessage'], resources: [props.deadLetters.queueArn] }));
    new Schedule(this, 'Schedule', {
      description: props.description,
      schedule: ScheduleExpression.cron({}),
      target: {
        bind: () => ({
          arn: props.targetArn,
          role,
          input: ScheduleTargetInput.fromObject(props.input),
          retryPolicy: {
            maximumEventAgeInSeconds: SCHEDULE_AGE_MAX_SECONDS,
            maximumRetryAttempts: SCHEDULE_RETRIES_MAX,
          },
          deadLetterConfig: { arn: props.deadLetters.queueArn },
        }),
      },
    });
  }
}

export interface TickChainProps {
  /** Receives messages that failed at every receive, and calls that the schedule could not make. */
  readonly deadLetters: Queue;
}

/**
 * The queue of node-monitor, in which each tick starts the next one (functions/node-monitor/chain.ts). A schedule,
 * the watchdog, restarts them.
 */
export class TickChain extends Construct {
  readonly queue: Queue;
  readonly #deadLetters: Queue;

  constructor(scope: Construct, id: string, { deadLetters }: TickChainProps) {
    super(scope, id);
    this.#deadLetters = deadLetters;
    this.queue = new Queue(this, 'Queue', {
      retentionPeriod: Duration.seconds(MESSAGE_RETENTION_SECONDS),
      visibilityTimeout: Duration.seconds(VISIBILITY_SECONDS),
      deadLetterQueue: { queue: deadLetters, maxReceiveCount: RECEIVES_MAX },
      enforceSSL: true,
    });
  }

  /** Lets the messages invoke the function, and the function send them. */
  drive(target: HandlerFunction): void {
    const { queueArn } = this.queue;
    target.allow(
      [
        'sqs:ChangeMessageVisibility',
        'sqs:DeleteMessage',
        'sqs:GetQueueAttributes',
        'sqs:ReceiveMessage',
        'sqs:SendMessage',
      ],
      [queueArn],
    );
    // Lambda stops a function that invokes itself through a queue after about 16 invocations, unless this is set.
    // Source: AWS Lambda Developer Guide, "Use Lambda recursive loop detection to prevent infinite loops".
    (target.lambda.node.defaultChild as CfnFunction).recursiveLoop = 'Allow';
    // Without a maximum concurrency: the slot claim ensures that one message acts, and Lambda polls a queue that has a
    // maximum with five pollers at all times, but reduces others to two when few messages arrive.
    // Source: AWS Lambda Developer Guide, "Configuring scaling behavior for SQS event source mappings".
    new EventSourceMapping(this, 'Source', {
      target: target.lambda,
      eventSourceArn: queueArn,
      batchSize: 1,
      reportBatchItemFailures: true,
    });
    new MinuteSchedule(this, 'Watchdog', {
      description: `Nodekeeper ${this.node.id}: restarts the chain of ticks if it has ended`,
      targetArn: queueArn,
      action: 'sqs:SendMessage',
      input: { watchdog: ContextAttribute.scheduledTime },
      deadLetters: this.#deadLetters,
    });
  }
}

export interface WakeUpsProps {
  readonly target: HandlerFunction;
  /** Receives calls that the schedule could not make. */
  readonly deadLetters: Queue;
}

/**
 * A function that node-monitor wakes when there is work (shared/ticks/tick.ts), and that a schedule invokes each
 * minute, whether or not there is work: the sweep. Both are asynchronous invocations. They are not repeated and not
 * kept, since the next one does the same.
 */
export class WakeUps extends Construct {
  constructor(scope: Construct, id: string, { target, deadLetters }: WakeUpsProps) {
    super(scope, id);
    target.lambda.configureAsyncInvoke({
      maxEventAge: Duration.seconds(EVENT_AGE_MAX_SECONDS),
      retryAttempts: 0,
    });
    new MinuteSchedule(this, 'Sweep', {
      description: `Nodekeeper ${id}: one tick per minute, with or without a wake-up`,
      targetArn: target.lambda.functionArn,
      action: 'lambda:InvokeFunction',
      input: { sweep: ContextAttribute.scheduledTime },
      deadLetters,
    });
  }
}
